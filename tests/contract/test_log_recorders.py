"""Several recorders share the partitions of the log on PostgreSQL: nothing is recorded twice, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from confluent_kafka import Producer

from tests.contract.bench import APP, notification, sent, targets
from tests.contract.clock import START, StoppedClock
from tests.contract.log import settings_of
from tests.contract.sql import SqlUnderTest
from waypost.domain.errors import Unavailable
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.domain.time import SECOND_MS
from waypost.pipeline.record import record
from waypost.ports.ledger import Arrived, Batch, Decided
from waypost.ports.work import Settled
from waypost.stores.kafka.messages import Task, encode, key_of
from waypost.stores.kafka.recording import KafkaRecords
from waypost.stores.kafka.topics import TopicNames, prepare
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

USERS = 40
STEP_MS = 10 * SECOND_MS
PATIENCE_S = 60.0


class Party:
    """A log of two partitions, its recorders, and their ledger."""

    def __init__(self, bootstrap: str, prefix: str, url: str) -> None:
        self.settings = msgspec.structs.replace(settings_of(bootstrap, prefix, prefix), stall_s=PATIENCE_S)
        self.topics = TopicNames(self.settings)
        self.store = SqlUnderTest(url)
        self.clock = StoppedClock()
        self.recorders: list[KafkaRecords] = []
        self._producer = Producer({"bootstrap.servers": bootstrap})

    async def join(self) -> KafkaRecords:
        """Open one more, and return when all partitions are shared with it."""
        made = KafkaRecords(self.settings, self.topics, self.store._opened.ledger, Silent(), self.clock, is_shared=True)
        self.recorders.append(made)
        await self._shared()
        return made

    async def leave(self, records: KafkaRecords) -> None:
        """Stop one, and return when the others have what it had."""
        self.recorders.remove(records)
        await records.stop()
        await self._shared()

    async def close(self) -> None:
        """Stop all."""
        for each in self.recorders:
            await each.stop()
        await self.store.close()

    async def put(self) -> None:
        """Write one notification for each user."""
        for n in range(USERS):
            made = notification(START, user=f"user-{n}")
            self._producer.produce(self.topics.of(Lane.NORMAL), encode(Task(made)), key_of(made.app, made.user_id))
        assert await asyncio.to_thread(self._producer.flush, PATIENCE_S) == 0

    async def turn(self, records: KafkaRecords) -> None:
        """Record what comes next; where a leader is just being elected, with the next turn."""
        self.clock.advance(STEP_MS)
        with contextlib.suppress(Unavailable):
            await record(records, self.store._opened.ledger)

    async def turns(self) -> None:
        """Let each have its turn."""
        await asyncio.gather(*(self.turn(each) for each in self.recorders))

    async def recorded(self, count: int) -> None:
        """Return when the ledger has *count* notifications, and counts no more."""
        async with asyncio.timeout(PATIENCE_S):
            while (n := (await self.store.views.balance()).get(NotificationStatus.PENDING, 0)) < count:
                await self.turns()
        assert n == count

    async def _shared(self) -> None:
        every = 2 * (len(self.topics.lanes) + 1)
        share = every // len(self.recorders)
        async with asyncio.timeout(PATIENCE_S):
            while [len(each._recorded) for each in self.recorders] != [share] * len(self.recorders):
                await self.turns()
        assert len({place for each in self.recorders for place in each._recorded}) == every


@pytest_asyncio.fixture
async def party(kafka_bootstrap: str, kafka_prefix: str, emptied_postgres: str) -> AsyncIterator[Party]:
    """A log and a ledger with nothing in them."""
    made = Party(kafka_bootstrap, kafka_prefix, emptied_postgres)
    await asyncio.to_thread(prepare, made.settings, made.topics)
    await made.store.open()
    yield made
    await made.close()


async def test_two_recorders_share_the_partitions_and_one_takes_over_all_when_the_other_is_gone(party: Party) -> None:
    """What the other had read and not written is recorded by its successor, and refused when it is written late."""
    first, second = await party.join(), await party.join()
    ledger = party.store._opened.ledger
    await party.put()
    await party.recorded(USERS)
    assert all(sum(each._recorded.values()) for each in (first, second)), "each had a part of the users"

    await party.put()
    batch = Batch()
    async with asyncio.timeout(PATIENCE_S):
        while not batch.marks:
            batch = await first.read()
    assert batch.entries
    await party.leave(first)
    await party.recorded(2 * USERS)
    assert not await ledger.record(batch.entries, batch.marks)
    await party.recorded(2 * USERS)


async def test_all_is_complete_when_each_recorder_has_said_so_of_its_partitions(party: Party) -> None:
    """Read after write asks for the least of them: one that is behind holds it back."""
    first, second = await party.join(), await party.join()
    ledger = party.store._opened.ledger
    async with asyncio.timeout(PATIENCE_S):
        while not await ledger.complete_until():
            await party.turns()
    await party.put()
    began = party.clock.now()
    for _ in range(4):
        await party.turn(first)
    assert await ledger.complete_until() < began
    async with asyncio.timeout(PATIENCE_S):
        while await ledger.complete_until() < began:
            await party.turn(second)
            await party.turn(first)
    await party.recorded(USERS)


async def test_what_was_written_when_the_answer_was_lost_is_not_written_again(party: Party) -> None:
    """A recorder whose step was made goes on behind it."""
    alone = await party.join()
    ledger = party.store._opened.ledger
    await party.put()
    async with asyncio.timeout(PATIENCE_S):
        while not (batch := await alone.read()).marks:
            pass
    assert await ledger.record(batch.entries, batch.marks)
    await party.turn(alone)
    await party.recorded(USERS)


async def test_what_two_record_of_the_same_notifications_at_once_is_one(party: Party) -> None:
    """Where topics differ in partitions, what arrived and what was settled come to different recorders."""
    other = SqlUnderTest(party.store._settings.url)
    await other.open()
    try:
        for _ in range(5):
            made = [notification(START, user=f"user-{n}") for n in range(USERS)]
            arrived = [Arrived(each) for each in made]
            settled = [Decided(Settled(each, (sent(0, START),), targets(1))) for each in reversed(made)]
            written = await asyncio.gather(
                party.store._opened.ledger.record(arrived), other._opened.ledger.record(settled)
            )
            assert all(written)
            statuses = await party.store.views.statuses(APP, [each.id for each in made])
            assert set(statuses.values()) == {NotificationStatus.SENT}
        assert await party.store.views.balance() == {NotificationStatus.SENT: 5 * USERS}
    finally:
        await other.close()
