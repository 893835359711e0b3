"""The task queue of a worker on the log: what is due, or lifted, comes back by turns."""

from __future__ import annotations

from tests.contract.bench import APP, OTHER_APP, notification
from tests.contract.clock import START
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS, later
from waypost.stores.kafka.messages import Task
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.progress import PartitionProgress
from waypost.stores.kafka.task_queue import READY_LIMIT, PartitionTasks, TaskEntry, TaskQueue

LASTING = later(START, HOUR_MS)


def _waits(task_queue: TaskQueue, app: AppId, begin: int, n: int, condition: str | None = None) -> None:
    """The next *n* from *begin* on, due one after the other."""
    part = PartitionTasks(PartitionRef("work.normal", 0), PartitionProgress(0, None), 1)
    for offset in range(begin, begin + n):
        task = Task(notification(START, app=app), None, later(START, offset), condition)
        task_queue.wait(TaskEntry(task, part, offset), later(START, offset))


def _taken(task_queue: TaskQueue) -> list[AppId]:
    return [entry.task.notification.app for entry in task_queue.take(Lane.NORMAL)]


def test_the_apps_of_what_is_due_take_turns() -> None:
    task_queue = TaskQueue()
    _waits(task_queue, APP, 0, 6)
    _waits(task_queue, OTHER_APP, 6, 1)
    assert task_queue.promote_due(LASTING, 2, {})[0] == 2
    assert sorted(_taken(task_queue)) == [APP, OTHER_APP]
    assert task_queue.promote_due(LASTING, 100, {})[0] == 5


def test_with_room_for_one_each_app_has_its_turn() -> None:
    task_queue = TaskQueue()
    _waits(task_queue, APP, 0, 3)
    _waits(task_queue, OTHER_APP, 3, 3)
    assert [task_queue.promote_due(LASTING, 1, {})[0] for _ in range(2)] == [1, 1]
    assert sorted(_taken(task_queue)) == [APP, OTHER_APP]


def test_the_conditions_lifted_take_turns() -> None:
    task_queue = TaskQueue()
    _waits(task_queue, APP, 0, 6, "breaker:demo/apns")
    _waits(task_queue, OTHER_APP, 6, 1, "breaker:other/apns")
    lifted = {"breaker:demo/apns": 10, "breaker:other/apns": 10}
    assert task_queue.promote_due(later(START, -1), 2, lifted)[0] == 2
    assert sorted(_taken(task_queue)) == [APP, OTHER_APP]
    assert task_queue.promote_due(later(START, -1), 100, lifted)[0] == 5
    assert task_queue.conditions() == frozenset()


def test_no_more_becomes_leasable_than_a_lane_may_hold() -> None:
    """What is due waits on, also as a place in the log alone, until some of it is leased."""
    task_queue = TaskQueue()
    _waits(task_queue, APP, 0, READY_LIMIT + 5)
    _waits(task_queue, APP, READY_LIMIT + 5, 5, "breaker:demo/apns")
    released = [task_queue.promote_due(LASTING, READY_LIMIT, {"breaker:demo/apns": 10})[0] for _ in range(2)]
    assert released == [READY_LIMIT, 0]
    assert len(_taken(task_queue)) == READY_LIMIT
    assert task_queue.promote_due(LASTING, READY_LIMIT, {"breaker:demo/apns": 10})[0] == 10
