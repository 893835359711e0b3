"""Bulk jobs, killed: the rows of the kill table that speak of pages and recipients."""

from __future__ import annotations

from tests.contract.bench import APP, Bench, again
from tests.contract.bulk_bench import (
    created,
    ids_of,
    job,
    leased,
    record,
    registered,
    sent_to_all,
    taken,
    users_of,
    walked,
)
from tests.contract.kills import Scenario, nothing, sound
from waypost.domain.channel import APNS
from waypost.domain.delivery import Target
from waypost.domain.ids import DeviceId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS
from waypost.ports.work import Settled

USERS = [f"u{n}" for n in range(7)]
MADE = job()
BULK: dict[str, Scenario] = {}


async def _made(bench: Bench) -> None:
    await registered(bench, *USERS)
    await created(bench, MADE)


async def _enqueue(bench: Bench) -> None:
    for _ in range(2):
        await bench.bulk.enqueue(APP, MADE.id, 3, 2)
        await leased(bench)


async def _enqueue_was_killed(bench: Bench) -> str:
    before = (await record(bench, MADE)).total
    assert before in {0, 3, 6}, "a page whole or not at all"
    second = await bench.crash()
    first = users_of(await leased(second))
    assert first == USERS[:before], "what is enqueued is leased again, in the order of the walk"
    third = await second.crash()
    assert await walked(third, MADE, piece=2) == len(USERS) - before
    assert users_of(await leased(third)) == USERS, "each of them once"
    await sent_to_all(await third.crash(), MADE)
    counts = (await record(bench, MADE)).counts
    assert counts == {NotificationStatus.SENT: len(USERS)}
    await sound(bench)
    return f"{before} recipients enqueued; walked on from there"


BULK["bulk enqueue"] = Scenario("bulk page enqueued … marked done", _made, nothing, _enqueue, _enqueue_was_killed)


async def _walked(bench: Bench) -> None:
    await _made(bench)
    await walked(bench, MADE, piece=4)


async def _lease_all(bench: Bench) -> None:
    bench.leased = await leased(bench)


async def _settle_recipients(bench: Bench) -> None:
    """Five of seven, in two pieces; one of them is to be tried again."""
    first, *others = bench.leased.items[:5]
    target = (Target(0, DeviceId("d"), APNS),)
    retried = Settled(first.notification, (again(0, bench.now, wait_ms=HOUR_MS),), target)
    assert await bench.settle(bench.leased, retried, *(taken(item, bench.now) for item in others)) == []


async def _settle_recipients_was_killed(bench: Bench) -> str:
    ids = await ids_of(bench, MADE, USERS)
    details = await sound(bench)
    assert len(details) in {0, 5}, "all that was reported together, or nothing"
    second = await bench.crash()
    expected = USERS if not details else USERS[5:]
    assert users_of(await leased(second)) == expected, "who has a row is not sent to again"
    third = await second.crash()
    assert await ids_of(third, MADE, USERS) == ids
    await sent_to_all(third, MADE)
    assert (await record(third, MADE)).counts == {NotificationStatus.SENT: len(USERS)}
    assert set(await sound(third)) == set(ids.values()), "the ids that were told before"
    return "all settled; only the others are sent" if details else "nothing settled; all leased again"


BULK["bulk settle"] = Scenario(
    "recipients sent … settled", _walked, _lease_all, _settle_recipients, _settle_recipients_was_killed
)
