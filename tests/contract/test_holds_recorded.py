"""Keys that are held, recorded and forgotten by several: Redis, the recorder, and other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from tests.contract.bench import by_content, by_key, new_id
from tests.contract.clock import START
from tests.contract.gate import Gate
from tests.contract.sql import WAITING, SqlUnderTest
from tests.contract.test_holds import again, confirm, hold, keyed, plain, said
from tests.contract.test_on_postgres import asked
from tests.journeys.harness import until
from tests.shows import shows
from waypost.domain.time import DAY_MS, HOUR_MS, SECOND_MS, Instant, later
from waypost.ports.dedup import Claimed
from waypost.ports.ledger import Arrived, Mark
from waypost.ports.work import Accepted, Conflicting, Duplicate, InProgress, NewNotification
from waypost.stores.redis.holds import ForgetfulDedup, RedisHolds
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.stores.sql.engine import Overtaken
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]


@shows("S1-82")
async def test_what_redis_lost_is_known_from_what_was_recorded(ledger_store: SqlUnderTest, redis_url: str) -> None:
    """After a failover to a replica that was behind, or whatever empties it (requirements S1-82)."""
    wire = SinglePrimary(RedisSettings(url=redis_url, timeout_s=10), Silent())
    await wire.start()
    try:
        store = ledger_store._opened
        holds = RedisHolds(wire, "", store.dedup.claimed)
        first, other = said("a"), said("b")
        await store.ledger.record([Arrived(first, keyed(first).claims), Arrived(other, plain(other).claims)])
        found = await holds.hold([keyed(again(first)), keyed(again(first)), plain(again(other)), plain(said("c"))])
        assert found[:3] == [Duplicate(first.id), Duplicate(first.id), Duplicate(other.id)]
        assert isinstance(found[3], bytes)
        assert await hold(RedisHolds(wire, ""), keyed(again(first))) == Duplicate(first.id), "Redis knows it again"
        await wire.execute([("FLUSHDB",)])
        assert await hold(holds, keyed(said("d"))) == Conflicting(first.id)
        assert await ForgetfulDedup(store.dedup, store.ledger.forget, holds).forget([by_content(other).key]) == 1
        second = again(other)
        assert await hold(holds, plain(second)) == second.id, "its window was ended"
    finally:
        await wire.stop()


@shows("S1-82")
async def test_redis_answers_before_the_store_and_the_store_when_redis_was_wiped(
    ledger_store: SqlUnderTest, redis_url: str
) -> None:
    """Requirements S1-82: a fast layer before a lasting one, which still refuses a replay an hour later."""
    wire = SinglePrimary(RedisSettings(url=redis_url, timeout_s=10), Silent())
    await wire.start()
    try:
        store, looked_up = ledger_store._opened, 0

        async def look_up(keys: Sequence[bytes], now: Instant) -> Mapping[bytes, Claimed]:
            nonlocal looked_up
            looked_up += 1
            return await store.dedup.claimed(keys, now)

        holds, made = RedisHolds(wire, "", look_up), said("a")
        first = NewNotification(made, (msgspec.structs.replace(by_content(made), until=later(START, DAY_MS)),))
        assert await hold(holds, first) == first.notification.id
        await store.ledger.record([Arrived(first.notification, first.claims)])
        await confirm(holds, first)
        looked_up = 0
        assert await hold(holds, plain(again(first.notification))) == Duplicate(first.notification.id)
        assert looked_up == 0, "Redis knows it"
        await wire.execute([("FLUSHDB",)])
        replay = again(msgspec.structs.replace(first.notification, created_at=later(START, HOUR_MS)))
        assert await hold(holds, plain(replay)) == Duplicate(first.notification.id)
        assert looked_up == 1, "the store knows it"
    finally:
        await wire.stop()


async def test_what_was_forgotten_before_it_was_recorded_stays_forgotten(
    ledger_store: SqlUnderTest, redis_url: str
) -> None:
    """The next equal request is new, whenever the recorder writes down what is in the log."""
    wire = SinglePrimary(RedisSettings(url=redis_url, timeout_s=10), Silent())
    await wire.start()
    try:
        store = ledger_store._opened
        holds = RedisHolds(wire, "", store.dedup.claimed)
        first, kept = said("a"), said("b")
        for each in (keyed(first), keyed(kept, "another")):
            await hold(holds, each)
            await confirm(holds, each)
        keys = [claim.key for claim in keyed(first).claims]
        assert await ForgetfulDedup(store.dedup, store.ledger.forget, holds).forget(keys) == 2
        await store.ledger.record([Arrived(first, keyed(first).claims), Arrived(kept, keyed(kept, "another").claims)])
        ledger_store.clock.advance(SECOND_MS)
        second = msgspec.structs.replace(first, id=new_id(ledger_store.clock.now()))
        assert await hold(holds, keyed(second)) == second.id
        await confirm(holds, keyed(second))
        await store.ledger.record([Arrived(second, keyed(second).claims), Arrived(first, keyed(first).claims)])
        await wire.execute([("FLUSHDB",)])
        assert await hold(holds, keyed(again(second))) == Duplicate(second.id), "what was said since is known"
        assert await hold(holds, plain(again(kept))) == Duplicate(kept.id)
    finally:
        await wire.stop()


async def test_a_hold_is_its_own_when_what_is_committed_with_it_is_repeated(
    emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accept of the same commit sees to its keys' table, and commits what there is; then another overtakes it."""
    store = SqlUnderTest(emptied_postgres)
    await store.open()
    try:
        worker = (await store.open_workers(1))[0]
        database, holds = store._workers[id(worker)].database, store._workers[id(worker)].holds
        gate, writer, commits = Gate(), database._writer, 0
        commit = writer.commit

        def held(_: Transaction, ops: Sequence[None]) -> Sequence[None]:
            gate.wait()
            return ops

        def overtaken() -> None:
            nonlocal commits
            commits += 1
            if commits == 2:
                raise Overtaken
            commit()

        monkeypatch.setattr(writer, "commit", overtaken)
        first, other = said("a"), said("b")
        waiting = database.commits.submit(OperationKind("wait", held, durable=False), None)
        await gate.reached()
        longer = NewNotification(other, (by_key(other, "another", 2 * DAY_MS),))
        both = asyncio.gather(hold(holds, keyed(first)), worker.accept([longer]))
        await asyncio.sleep(0)
        gate.open()
        await waiting
        answer, accepted = await both
        assert answer == first.id
        assert accepted == [Accepted(other.id)]
        assert commits == 3, "both were in one commit, which was repeated"
        assert isinstance(await hold(holds, keyed(again(first))), InProgress)
    finally:
        await store.close()


async def test_what_is_forgotten_while_it_is_being_recorded_stays_forgotten(
    emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another process, on the other side of a change of slice: who forgets waits for the recorder's commit."""
    recording, forgetting = SqlUnderTest(emptied_postgres), SqlUnderTest(emptied_postgres)
    await recording.open()
    await forgetting.open()
    try:
        ledger, gate = recording._opened.ledger, Gate()
        await ledger.begin({"lane/0": 0}, ["lane/0"])
        before, first = keyed(said("b"), "another"), keyed(said("a"))
        assert await ledger.record([Arrived(before.notification, before.claims)], [Mark("lane/0", 0, 1)])
        keys = [first.claims[0].key]
        forgetting.clock.advance(12 * HOUR_MS)
        writer = recording._opened.database._writer
        commit = writer.commit

        def held() -> None:
            gate.wait()
            commit()

        monkeypatch.setattr(writer, "commit", held)
        recorded = asyncio.create_task(
            ledger.record([Arrived(first.notification, first.claims)], [Mark("lane/0", 1, 2)])
        )
        await gate.reached()
        forgotten = asyncio.create_task(forgetting._opened.ledger.forget(keys))

        async def is_through_or_waits() -> bool:
            return forgotten.done() or await asyncio.to_thread(asked, emptied_postgres, WAITING) != [(0,)]

        await until(is_through_or_waits, "the end of forgetting, or its wait for the recorder")
        gate.open()
        assert await recorded
        assert await forgotten == 1
        assert await forgetting._opened.dedup.claimed(keys, START) == {}
    finally:
        await recording.close()
        await forgetting.close()
