"""What the relayed stack alone must be asked: relays, claims, what the broker loses, members that are gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import psycopg
import pytest
import pytest_asyncio

from scripts.services.postgres import Postgres
from scripts.services.redis import Redis
from tests.contract.bench import APP, Bench, again, intent, notification, sent, targets
from tests.contract.relayed import RelayedUnderTest
from tests.contract.sql import SqlUnderTest
from tests.engines import beside, run_sql
from tests.journeys.harness import until
from tests.unit.adapters.noted import Noted
from waypost.adapters.sql.relayed import resting
from waypost.adapters.sql.relayed.adopt import adopt
from waypost.adapters.sql.relayed.lease import LEASE, Wanted
from waypost.adapters.sql.relayed.outbox import OVERDUE_MS
from waypost.adapters.sql.relayed.relaying import Relay
from waypost.adapters.sql.settings import OutboxSettings
from waypost.domain.amendment import TooLate
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.progress import Stale
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS
from waypost.ports.broker import Entry
from waypost.ports.outbox import EntryState, OutboxQuery
from waypost.ports.work import Lease, Settled
from waypost.telemetry import Event

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]


@pytest_asyncio.fixture
async def stack(emptied_postgres: str, redis_url: str) -> AsyncIterator[RelayedUnderTest]:
    """An empty stack."""
    opened = RelayedUnderTest(emptied_postgres, redis_url)
    await opened.open()
    yield opened
    await opened.close()


async def benches(stack: RelayedUnderTest, count: int) -> list[Bench]:
    """Workers of it."""
    return [Bench(stack, worker) for worker in await stack.open_workers(count)]


async def shown(stack: RelayedUnderTest, *states: EntryState) -> list[tuple[NotificationId, int | None]]:
    """What operators see of the outbox."""
    return [(entry.notification_id, entry.n) for entry in await stack.outbox.entries(OutboxQuery(APP, states))]


def published_by(relay: Relay) -> list[Lane]:
    """The lanes that it publishes from now on, one for each time."""
    lanes: list[Lane] = []
    broker = relay._topics.deliveries
    publish = broker.publish

    async def noted(lane: Lane, entries: Sequence[Entry]) -> None:
        lanes.append(lane)
        await publish(lane, entries)

    setattr(broker, publish.__name__, noted)
    return lanes


async def test_an_entry_is_written_with_its_notification_and_followed_to_its_end(stack: RelayedUnderTest) -> None:
    """Requirements S4-07, S4-08, S4-13, S4-15: pending, claimed, published, done; leased is ``processing``."""
    (bench,) = await benches(stack, 1)
    made = await bench.accepted()
    assert await shown(stack, EntryState.PENDING) == [(made.id, None)]
    assert await bench.status(made) is NotificationStatus.PENDING
    await stack.claim(bench.worker)
    assert await shown(stack, EntryState.CLAIMED) == [(made.id, None)]
    await stack.crash(bench.worker)
    (bench,) = await benches(stack, 1)
    await stack.relayed()
    assert await shown(stack, EntryState.PUBLISHED) == [(made.id, None)]
    lease, item = await bench.take_one()
    assert await bench.status(made) is NotificationStatus.PROCESSING
    await bench.settle_first(lease, item, 2, sent(0, bench.now), again(1, bench.now))
    assert await shown(stack) == [(made.id, None)]
    assert (await stack.outbox.counts(APP))[EntryState.DONE] == 1


async def test_what_was_settled_is_over_also_if_the_server_crashes_at_once(
    postgres_alone: Postgres, redis_url: str
) -> None:
    """A lost settle would leave a lease that is on record, of which its holder knows nothing any more."""
    rarely = "ALTER SYSTEM SET wal_writer_delay = '10s'"  # the longest that what need not be durable is in memory alone
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS settled WITH (FORCE)", "CREATE DATABASE settled", rarely)
    run_sql(postgres_alone.url, "SELECT pg_reload_conf()")
    stack = RelayedUnderTest(beside(postgres_alone.url, "settled"), redis_url)
    await stack.open()
    try:
        (bench,) = await benches(stack, 1)
        made = await bench.accepted()
        lease, item = await bench.take_one()
        await bench.accepted()  # durable, and with it the lease
        await bench.settle_first(lease, item, 1, sent(0, bench.now))
        await asyncio.to_thread(postgres_alone.kill)
        await asyncio.to_thread(postgres_alone.start)

        async def found() -> NotificationStatus | None:
            with contextlib.suppress(Unavailable):
                return await bench.status(made)
            return None

        assert await until(found, "the server's answer") is NotificationStatus.SENT
    finally:
        await stack.close()
        run_sql(postgres_alone.url, "ALTER SYSTEM RESET wal_writer_delay")


async def test_a_lease_that_its_worker_knows_nothing_of_is_let_go_of(stack: RelayedUnderTest) -> None:
    """As a failover brings it back that lost the settle; what is under way, routed or not, stays its worker's."""
    bench, other = await benches(stack, 2)
    lost = await bench.accepted()
    member = stack.member_of(bench.worker)
    wanted = Wanted(member, Lane.NORMAL, (lost.id,), bench.now, 1)
    await stack.database_of(bench.worker).commits.submit(LEASE, wanted)
    whole, routed = await bench.accepted(user="bob"), await bench.accepted(user="eve")
    lease = await bench.take()
    items = {item.notification.id: item for item in lease.items}
    assert set(items) == {whole.id, routed.id}
    await bench.settle_first(lease, items[routed.id], 2, sent(0, bench.now))
    assert await stack.compare(bench.worker) == 1
    assert await stack.compare(bench.worker) == 0
    assert await other.leasable() == [lost.id]
    assert await bench.settle_rest(lease, items[routed.id], sent(1, bench.now)) == []
    assert await bench.settle_first(lease, items[whole.id], 1, sent(0, bench.now)) == []
    assert await bench.status(routed) is await bench.status(whole) is NotificationStatus.SENT


async def test_what_is_done_with_is_not_remembered(stack: RelayedUnderTest) -> None:
    """However it ends: sent, to be tried again, given back, over before any target, settled by somebody else."""
    (bench,) = await benches(stack, 1)
    for n in range(5):
        await bench.accepted(user=f"user-{n}", guarantee=Guarantee.AT_MOST_ONCE if n == 4 else Guarantee.AT_LEAST_ONCE)
    lease = await bench.take()
    one, two, three, four, five = lease.items
    await bench.settle_first(lease, one, 1, sent(0, bench.now))
    await bench.settle_first(lease, two, 2, again(0, bench.now), sent(1, bench.now))
    await bench.settle(lease, Settled(three.notification, given_back=True))
    await bench.settle(lease, Settled(four.notification, verdict=NotificationStatus.EXPIRED))
    await bench.settle_first(lease, five, 1, intent(0, bench.now))
    assert stack.held_by(bench.worker) == {(five.notification.id, 0)}
    await bench.settle_rest(lease, five, sent(0, bench.now))
    assert stack.held_by(bench.worker) == set()


async def test_several_relays_publish_each_entry_once(stack: RelayedUnderTest) -> None:
    """Requirements S4-10, S4-12: whoever claims an entry publishes it, a lane at once."""
    await benches(stack, 3)
    bench = Bench(stack, (await stack.open_workers(1))[0])
    made = [notification(bench.now, lane=lane) for lane in (Lane.NORMAL, Lane.HIGH) for _ in range(30)]
    await bench.accept(*made)
    published = {id(relay): published_by(relay) for relay in stack.relays.values()}
    counts = await asyncio.gather(*(relay.relay() for relay in stack.relays.values()))
    assert sum(counts) == len(made)
    for lanes in published.values():
        assert len(lanes) == len(set(lanes)), "one publish for each lane"
    assert await stack.at_the_broker() == len(made)
    assert len(await shown(stack, EntryState.PUBLISHED)) == 50


async def test_what_a_dead_relay_published_without_marking_it_is_published_again_and_sent_once(
    stack: RelayedUnderTest,
) -> None:
    """Requirements S4-11, S4-16: at least once from the outbox to the broker, once from there to a worker."""
    dying, bench = await benches(stack, 2)
    made = await dying.accepted()
    await stack.claim(dying.worker, publish=True)
    assert await stack.at_the_broker() == 1
    assert await stack.relays[id(bench.worker)].relay() == 0, "claimed by somebody who lives"
    await stack.crash(dying.worker)
    assert await stack.relays[id(bench.worker)].relay() == 1
    assert await stack.at_the_broker() == 2
    lease, item = await bench.take_one()
    assert (await bench.lease()).items == (), "both copies were handed out, the second finds it leased"
    assert await bench.settle_first(lease, item, 1, sent(0, bench.now)) == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_what_the_broker_lost_is_leased_when_it_is_overdue(stack: RelayedUnderTest) -> None:
    """After a flush nothing is lost, and nothing is leased twice."""
    (bench,) = await benches(stack, 1)
    made = [await bench.accepted(user=f"u{n}") for n in range(3)]
    held = await bench.lease(1)
    await stack.relayed()
    await stack.wire.execute([("FLUSHDB",)])
    bench.clock.advance(OVERDUE_MS - 1)
    assert (await bench.lease()).items == ()
    bench.clock.advance(1)
    again_leased = await Bench(stack, (await stack.open_workers(1))[0]).lease()
    assert [item.notification.id for item in again_leased.items] == [one.id for one in made[1:]]
    assert await bench.settle_first(held, held.items[0], 1, sent(0, bench.now)) == []


async def test_without_the_broker_the_outbox_itself_is_leased(stack: RelayedUnderTest) -> None:
    """Redis away: delivery goes on, in accept order, each item with one worker."""
    one, other = await benches(stack, 2)
    made = [await one.accepted(user=f"u{n}") for n in range(6)]
    await stack.wire.stop()
    leases = [await stack.directly(each.worker).lease(Lane.NORMAL, 3, one.now) for each in (one, other)]
    assert [item.notification.id for lease in leases for item in lease.items] == [each.id for each in made]


async def test_a_relay_rests_longer_each_time_and_goes_on_when_any_worker_hears_of_the_broker(
    emptied_postgres: str, redis_alone: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requirement S4-73: 5, 10, 20, 40, 60 s; meanwhile nothing fails, and what could not be published is leased."""
    stack = RelayedUnderTest(emptied_postgres, redis_alone.url)
    noted = stack.telemetry = Noted()
    await stack.open()
    bench, other = await benches(stack, 2)
    relay = stack.relays[id(other.worker)]
    await stack.wire.execute([("FLUSHDB",)])
    redis_alone.kill()
    made = [await bench.accepted(user=f"u{n}") for n in range(2)]
    for _ in range(6):
        with pytest.raises(Unavailable):
            await relay.relay()
    assert [each["again_in_s"] for each in noted.fields_of(Event.RELAY_RETRY)] == [5, 10, 20, 40, 60, 60]

    async def waiting() -> bool:
        return await shown(stack, EntryState.PENDING) == [(one.id, None) for one in reversed(made)]

    await until(waiting, "the last claims are given up")
    lease = await stack.directly(bench.worker).lease(Lane.NORMAL, 1, bench.now)
    assert [item.notification.id for item in lease.items] == [made[0].id]

    monkeypatch.setattr(resting, "RESTS_S", (3600.0,))
    relay.start()
    relay.wake()

    async def rests() -> bool:
        return len(noted.fields_of(Event.RELAY_RETRY)) == 7

    await until(rests, "the relay rests")
    redis_alone.start()

    async def carried() -> bool:
        await stack.directly(bench.worker).lease(Lane.HIGH, 1, bench.now)  # finds out that Redis is back
        with contextlib.suppress(Unavailable):
            return await stack.at_the_broker() == 2
        return False

    await until(carried, "what waited is published")
    await relay.stop()
    await stack.close()


async def test_a_relay_outlives_a_fault_of_one_turn(stack: RelayedUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of, and the next turn publishes."""
    noted = stack.telemetry = Noted()
    (bench,) = await benches(stack, 1)
    relay = stack.relays[id(bench.worker)]

    async def fails(claimed: object) -> list[Lane]:
        monkeypatch.undo()
        raise ValueError("of an entry")

    monkeypatch.setattr(relay, "_publish", fails)
    relay.start()
    await bench.accepted()

    async def told() -> bool:
        return noted.fields_of(Event.STAGE_FAILED) == [{"stage": "relay", "error": "ValueError"}]

    async def published() -> bool:
        relay.wake()
        return await stack.at_the_broker() == 1

    await until(told, "the fault is told of")
    await until(published, "the next turn publishes")
    await relay.stop()


async def test_no_plan_leases_or_claims_more_than_was_asked_for(stack: RelayedUnderTest, emptied_postgres: str) -> None:
    """Where PostgreSQL believes that there is one row, it may pick anew for each row that it finds instead."""
    (bench,) = await benches(stack, 1)
    made = [await bench.accepted(user="u0")]
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        connection.execute("ANALYZE outbox")
    made += [await bench.accepted(user=f"u{n}") for n in range(1, 6)]
    relay = stack.relays[id(bench.worker)]
    relay._settings = OutboxSettings(batch=2)
    assert await relay.relay() == 2
    for one in made:
        bench.clock.advance(OVERDUE_MS)
        lease = await stack.directly(bench.worker).lease(Lane.NORMAL, 1, bench.now)
        assert [item.notification.id for item in lease.items] == [one.id]


async def test_whoever_is_no_member_any_more_settles_and_extends_nothing(
    stack: RelayedUnderTest, emptied_postgres: str
) -> None:
    """A worker that was frozen for longer than its lease finds that all it had is another's."""
    frozen, bench = await benches(stack, 2)
    made = await frozen.accepted()
    lease, item = await frozen.take_one()
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        connection.execute("DELETE FROM member WHERE id = %s", (lease.token % (1 << 40),))
    taken_over, same = await bench.take_one()
    assert same.notification.id == item.notification.id
    late = Settled(item.notification, (sent(0, frozen.now),), targets(1))
    assert await frozen.settle(lease, late) == [Stale(made.id, 0, 1)]
    assert await bench.receipts(made) == ()
    assert await bench.settle_first(taken_over, same, 1, sent(0, bench.now)) == []


async def test_what_was_withdrawn_while_it_was_at_the_broker_is_not_leased(stack: RelayedUnderTest) -> None:
    """Row state decides, whoever is asked; once leased it is too late."""
    bench, other = await benches(stack, 2)
    made, leased = await bench.accepted(), await bench.accepted(lane=Lane.HIGH)
    await stack.relayed()
    await bench.lease(lane=Lane.HIGH)
    await other.withdraw(made)
    assert (await bench.lease()).items == ()
    assert await bench.status(made) is NotificationStatus.CANCELLED
    assert isinstance(await other.withdraw(leased), TooLate)


async def test_what_is_done_is_dropped_after_a_while_and_nothing_else(stack: RelayedUnderTest) -> None:
    """Requirement S4-14."""
    (bench,) = await benches(stack, 1)
    done = await bench.accepted(user="done")
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    still_open = await bench.accepted(user="open")
    relay = stack.relays[id(bench.worker)]
    assert await relay.tidy() == 0
    assert (done.id, None) in await shown(stack)
    bench.clock.advance(HOUR_MS)
    assert await relay.tidy() == 1
    assert await shown(stack) == [(still_open.id, None)]


async def test_work_of_another_stack_is_taken_over(stack: RelayedUnderTest, emptied_postgres: str) -> None:
    """What was accepted without an outbox gets its entry; an entry whose work was done without it ends."""
    without = SqlUnderTest(emptied_postgres)
    await without.open()
    stored = Bench(without, (await without.open_workers(1))[0])
    (relayed,) = await benches(stack, 1)
    over, kept = await relayed.accepted(user="a"), await stored.accepted(user="b")
    lease: Lease = await stored.lease()
    for item in lease.items:
        if item.notification.id == over.id:
            await stored.settle_first(lease, item, 1, sent(0, stored.now))
    await without.close()
    await adopt(stack.database_of(relayed.worker))
    assert await relayed.leasable() == [kept.id]
