"""A process killed while it counts what the journal says, between any two statements."""

from __future__ import annotations

from collections.abc import Sequence

from tests.contract.bench import APP, Bench, sent, targets
from tests.contract.kills import Scenario, accepted, known, nothing
from tests.contract.sql import SqlUnderTest
from waypost.domain.device_event import DeviceEvent, EventKind
from waypost.domain.ids import UserId
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.analytics.parts import count
from waypost.features.parts import Ground
from waypost.pipeline.tail import Reader, tail
from waypost.ports.analytics import CountQuery
from waypost.ports.journal import JournalRow
from waypost.ports.work import Settled
from waypost.stores.sql.rollup import READER


def _ground(bench: Bench) -> Ground:
    assert isinstance(bench.store, SqlUnderTest)
    return bench.store.ground_of(bench.worker)


async def _opened(bench: Bench) -> None:
    """Send three to two devices each; the first one is opened, and a button of it pressed."""
    await accepted(bench)
    lease = await bench.take()
    both = (sent(0, bench.now), sent(1, bench.now))
    assert await bench.settle(lease, *(Settled(item.notification, both, targets(2)) for item in lease.items)) == []
    await bench.confirm(known(1), 1, DeliveryStatus.OPENED)
    pressed = DeviceEvent(known(1).id, 1, EventKind.ACTION, bench.now, "track")
    await _ground(bench).store.device_events.add([pressed])


async def _count(bench: Bench) -> None:
    """Count in two transactions: what was sent, and what became of it."""
    ground = _ground(bench)

    async def take(rows: Sequence[JournalRow]) -> None:
        for part in (rows[:2], rows[2:]):
            await count(ground, part)

    while await tail(bench.store.journal, Reader(READER, take, keeps_position=True)):
        pass


async def _count_was_killed(bench: Bench) -> str:
    store = _ground(bench).store
    reached = await store.journal.position(READER)
    last = (await store.journal.read(0, 1_000))[-1].position
    await _count(bench)
    query = CountQuery(APP, Instant(0), later(bench.now, DAY_MS))
    counts = {it.event.value: (it.deliveries, it.notifications) for it in await store.analytics.counts(query)}
    assert counts == {"sent": (6, 3), "delivered": (1, 1), "read": (1, 1), "opened": (1, 1), "action_taken": (1, 1)}
    done = {each.name: each.count for each in await store.user_events.of(APP, UserId("u1"))}
    assert done == dict.fromkeys(counts, 1)
    assert [(sum(it.sent), sum(it.opened)) for it in await store.analytics.hours(APP, None, Instant(0))] == [(3, 1)]
    return "all counted" if reached == last else "counted up to a row; the rest follows, each once"


ROLLING_UP = {"roll up": Scenario("journal read … counted and passed on", _opened, nothing, _count, _count_was_killed)}
