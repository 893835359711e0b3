"""The desk of a worker on the log: what is due, or lifted, comes back by turns."""

from __future__ import annotations

from tests.contract.bench import APP, OTHER_APP, notification
from tests.contract.clock import START
from waypost.adapters.kafka.consumer import Place
from waypost.adapters.kafka.desk import READY_LIMIT, Desk, Entry, Part
from waypost.adapters.kafka.messages import Task
from waypost.adapters.kafka.progress import Progress
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS, later

LASTING = later(START, HOUR_MS)


def _waits(desk: Desk, app: AppId, begin: int, n: int, condition: str | None = None) -> None:
    """The next *n* from *begin* on, due one after the other."""
    part = Part(Place("work.normal", 0), Progress(0, None), 1)
    for offset in range(begin, begin + n):
        task = Task(notification(START, app=app), None, later(START, offset), condition)
        desk.wait(Entry(task, part, offset), later(START, offset))


def _taken(desk: Desk) -> list[AppId]:
    return [entry.task.notification.app for entry in desk.take(Lane.NORMAL)]


def test_the_apps_of_what_is_due_take_turns() -> None:
    desk = Desk()
    _waits(desk, APP, 0, 6)
    _waits(desk, OTHER_APP, 6, 1)
    assert desk.release(LASTING, 2, {})[0] == 2
    assert sorted(_taken(desk)) == [APP, OTHER_APP]
    assert desk.release(LASTING, 100, {})[0] == 5


def test_with_room_for_one_each_app_has_its_turn() -> None:
    desk = Desk()
    _waits(desk, APP, 0, 3)
    _waits(desk, OTHER_APP, 3, 3)
    assert [desk.release(LASTING, 1, {})[0] for _ in range(2)] == [1, 1]
    assert sorted(_taken(desk)) == [APP, OTHER_APP]


def test_the_conditions_lifted_take_turns() -> None:
    desk = Desk()
    _waits(desk, APP, 0, 6, "breaker:demo/apns")
    _waits(desk, OTHER_APP, 6, 1, "breaker:other/apns")
    lifted = {"breaker:demo/apns": 10, "breaker:other/apns": 10}
    assert desk.release(later(START, -1), 2, lifted)[0] == 2
    assert sorted(_taken(desk)) == [APP, OTHER_APP]
    assert desk.release(later(START, -1), 100, lifted)[0] == 5
    assert desk.conditions() == frozenset()


def test_no_more_becomes_leasable_than_a_lane_may_hold() -> None:
    """What is due waits on, also as a place in the log alone, until some of it is leased."""
    desk = Desk()
    _waits(desk, APP, 0, READY_LIMIT + 5)
    _waits(desk, APP, READY_LIMIT + 5, 5, "breaker:demo/apns")
    released = [desk.release(LASTING, READY_LIMIT, {"breaker:demo/apns": 10})[0] for _ in range(2)]
    assert released == [READY_LIMIT, 0]
    assert len(_taken(desk)) == READY_LIMIT
    assert desk.release(LASTING, READY_LIMIT, {"breaker:demo/apns": 10})[0] == 10
