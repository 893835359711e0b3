"""A paced gateway has one queue: each request is taken in its turn, also one that was given up while it waited."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from h2.events import PingAckReceived

from tests.adapters.lab.senders import Senders
from tests.adapters.lab.test_faults import accepted, opened, script
from tests.adapters.lab.test_wire import ALERT, DEVICE, apns_headers
from waypost.lab import Lab
from waypost.lab.faults import PaceFault
from waypost.lab.pace import Queue, QueueState

pytestmark = pytest.mark.asyncio
NEVER = 0.001
"""A pace at which nothing more is taken within a test: the turn after the first is 1,000 s away."""


async def until(senders: Senders, holds: Callable[[], bool]) -> None:
    """Ask the lab, in this very process, for something until it has come so far."""
    async with asyncio.timeout(60):
        while not holds():
            await senders.admin("GET", "/queues")


def paced(per_s: float, **more: Any) -> dict[str, Any]:
    return {"where": "apns", "do": {"pace": {"per_s": per_s, **more}}}


async def test_all_connections_wait_in_one_queue_first_come_first_served(senders: Senders, lab: Lab) -> None:
    wires = [await opened(senders, lab) for _ in range(2)]
    await script(senders, paced(100))
    sent = [(wire, wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 5)) for wire in wires]
    assert [await wire.answer(stream_id) for wire, ids in sent for stream_id in ids] == [200] * 10
    state = lab.queues["apns"].state
    assert (state.taken, state.waiting, state.given_up, state.turned_away) == (10, 0, 0, 0)
    assert state.lasted_s - state.idle_s - state.stood_s == pytest.approx(9 / 100)
    assert 5 <= state.most_waiting <= 10
    for wire in wires:
        await wire.close()


@pytest.mark.parametrize("how", ["reset", "lost"])
async def test_a_request_that_was_given_up_is_taken_in_its_turn(senders: Senders, lab: Lab, how: str) -> None:
    wire = await opened(senders, lab)
    await script(senders, paced(NEVER))
    first, second = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 2)
    assert await wire.answer(first) == 200
    assert accepted(lab) == 2, "one that opened the connection, one in its turn"
    if how == "reset":
        wire.h2.reset_stream(second, 8)
        wire.h2.ping(b"12345678")
        wire.flush()
        await wire.until(PingAckReceived)
    else:
        await wire.close()
        (connection,) = [each for each in lab.records.connections.values() if each.session]
        await until(senders, lambda: connection.closed_at is not None)
    await script(senders, paced(1000))
    queue = lab.queues["apns"]
    await until(senders, lambda: queue.state.taken == 2)
    assert queue.state.given_up == 1
    received = (await senders.admin("GET", "/received"))["received"]
    assert [(each["accepted"], each["status"]) for each in received] == [(True, 200), (True, 200), (True, 0)]
    assert received[2]["at"] >= received[1]["at"]
    await wire.close()


@pytest.mark.parametrize(
    ("when_full", "status", "reason"),
    [
        ({}, 503, "ServiceUnavailable"),
        ({"when_full": {"status": 429, "reason": "TooManyRequests"}}, 429, "TooManyRequests"),
    ],
)
async def test_a_full_queue_turns_away_at_once(
    senders: Senders, lab: Lab, when_full: dict, status: int, reason: str
) -> None:
    wire = await opened(senders, lab)
    await script(senders, paced(100, queue=2, **when_full))
    ids = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 5)
    assert [await wire.answer(stream_id) for stream_id in ids] == [200, 200, status, status, status]
    counts = await senders.admin("GET", "/counts")
    assert (counts["apns"]["accepted"], counts["apns"]["reasons"]) == (3, {reason: 3})
    assert (await senders.admin("GET", "/queues"))["apns"]["turned_away"] == 3
    await wire.close()


async def test_the_pace_changes_while_the_queue_stays(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(senders, paced(NEVER))
    ids = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 6)
    assert await wire.answer(ids[0]) == 200
    assert (await senders.admin("GET", "/queues"))["apns"]["waiting"] == 5
    await script(senders, paced(1000))
    assert [await wire.answer(stream_id) for stream_id in ids[:3]] == [200] * 3
    await senders.admin("DELETE", "/faults")
    assert [await wire.answer(stream_id) for stream_id in ids] == [200] * 6
    await wire.close()


async def test_what_is_wrong_is_refused_at_once_and_other_rules_act_in_turn(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    failing = {"answer": {"status": 500, "reason": "InternalServerError", "accept": True}}
    await script(senders, {"do": {"latency_ms": 1}}, paced(NEVER), {"match": {"after": 1}, "do": failing})
    good, failed = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 2)
    assert await wire.answer(good) == 200
    await script(senders, paced(NEVER))
    wrong = {**apns_headers(senders), "apns-priority": "7"}
    assert await wire.answer(wire.send(DEVICE, wrong, ALERT)) == 400
    assert accepted(lab) == 2, "the one that is to fail is not taken yet"
    await script(senders, paced(1000))
    assert await wire.answer(failed) == 500
    assert accepted(lab) == 3
    await wire.close()


async def test_every_gateway_has_a_queue_of_its_own_and_speaks_its_language(senders: Senders) -> None:
    subscription = await senders.subscription()
    old = await senders.subscription(transport="http1")
    await senders.fcm()
    await script(senders, {"do": {"pace": {"per_s": 1000}}})
    answers = [await senders.apns(), await senders.fcm(), await senders.webpush(subscription)]
    assert [each.status_code for each in answers] == [200, 200, 201]
    vapid = senders.vapid(aud=old["endpoint"].split("/push/")[0])
    assert (await senders.webpush(old, {"authorization": vapid})).status_code == 201
    queues = await senders.admin("GET", "/queues")
    assert {name: queues[name]["taken"] for name in ("apns", "fcm", "webpush")} == {"apns": 1, "fcm": 1, "webpush": 2}


async def test_a_reset_counts_from_nothing(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(senders, paced(NEVER))
    ids = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 3)
    assert await wire.answer(ids[0]) == 200
    await senders.admin("POST", "/reset")
    assert lab.queues["apns"].state == QueueState()
    assert (accepted(lab), await senders.admin("GET", "/summary")) == (0, {})
    await wire.close()


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([paced(0)], "per_s above 0"),
        ([paced(1, queue=0)], "queue of at least 1"),
        ([paced(1), {"do": {"pace": {"per_s": 2}}}], "one pace"),
    ],
)
async def test_a_wrong_pace_is_refused(senders: Senders, rules: list, says: str) -> None:
    assert says in (await senders.admin("POST", "/faults", rules))["error"]


async def test_idle_time_and_time_stood_still_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps while nothing waits, then while something does; missed turns are not made up for."""
    loop = asyncio.get_running_loop()
    clock, ahead = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + ahead)
    queue, taken = Queue(), asyncio.Queue[int]()
    queue.follow(PaceFault(per_s=500))

    def offer(number: int) -> None:
        def take() -> bool:
            taken.put_nowait(number)
            return True

        assert queue.offer(take)

    offer(0)
    await taken.get()
    ahead = 20.0
    offer(1)
    offer(2)
    ahead = 50.0
    assert [await taken.get(), await taken.get()] == [1, 2]
    state = queue.state
    assert state.idle_s == pytest.approx(20, abs=1)
    assert state.stood_s == pytest.approx(30, abs=1)
    assert state.lasted_s == pytest.approx(50, abs=2)
