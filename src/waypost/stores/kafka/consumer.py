"""The consumer of the log, in a thread of its own, which brings batches to the event loop.

Cooperative rebalancing: only partitions that move stop. Before one is let go of, the loop is given a moment to finish
what is under way of it; the heartbeat goes on meanwhile, by librdkafka. Only this thread calls the client: a call from
another while it polls holds the interpreter's lock and waits for ever (seen with confluent-kafka 2.16).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from msgspec import Struct, structs

from waypost.stores.kafka.partitions import (
    Committed,
    IncomingMessage,
    PartitionRef,
    beginnings,
    incoming,
    partitions_of,
    places_of,
)
from waypost.stores.kafka.settings import KafkaMember

_LOOK_AGAIN_MS = 10_000
"""How soon a topic or partition is noticed that the broker asked had not heard of at the time of joining; by default
that is five minutes, for which nothing of it would be received."""
_POLL_S = 0.1
_BATCH = 500
_BATCHES_AHEAD = 8
"""The batches that the loop has not taken yet; then the thread waits."""
_WAITS_HELD = 10
"""The waits of ``_POLL_S`` for an owner that wants nothing, after which partitions pause."""
_COMMIT_MS = 1_000
HAND_OVER_S = 3.0
"""Seconds in which a partition that moves may finish what is under way of it."""


class Owner(Protocol):
    """The worker on what is consumed; called on the event loop, in order."""

    def assigned(self, partitions: Sequence[Committed]) -> None:
        """Take over partitions that are ours from here on."""
        ...

    async def revoked(self, places: Sequence[PartitionRef]) -> None:
        """Give up partitions that go to somebody else when this returns, or soon after."""
        ...

    def lost(self, places: Sequence[PartitionRef]) -> None:
        """Forget partitions that are somebody else's already."""
        ...

    def received(self, batch: Sequence[IncomingMessage]) -> None:
        """Take the next messages."""
        ...

    def failed(self, error: Exception) -> None:
        """Handle that nothing more will come: this worker had better end."""
        ...


class GroupConsumer:
    """A member of the group that shares *topics*."""

    def __init__(
        self,
        settings: KafkaMember,
        topics: Sequence[str],
        owner: Owner,
        is_stalled: Callable[[], bool],
        *,
        commits: bool = False,
        heads: bool = False,
    ) -> None:
        """Create the member; *commits*: commit what the owner says is done, now and then and before it lets go.

        *heads*: the time and the headers of messages are wanted, too.
        """
        self._incoming = partial(incoming, heads=heads)
        self._topics = list(topics)
        self._owner = owner
        self._is_stalled = is_stalled
        self._consumer = Consumer(
            {
                **settings.client(),
                "group.id": settings.group,
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": int(settings.session_timeout_s * 1_000),
                "heartbeat.interval.ms": int(settings.heartbeat_s * 1_000),
                "max.poll.interval.ms": int(settings.silence_s * 1_000),
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": commits,
                "auto.commit.interval.ms": _COMMIT_MS,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "topic.metadata.refresh.interval.ms": _LOOK_AGAIN_MS,
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 16_384,
                "statistics.interval.ms": 2_000,
                "stats_cb": self._on_statistics,
                "on_commit": self._on_commit,
            }
        )
        self.lags: dict[PartitionRef, int] = {}
        """The messages of each partition that were not received yet, some seconds ago."""
        self.is_connected = True
        """Whether any broker was there and answering, some seconds ago."""
        self._heartbeat_s = settings.heartbeat_s
        self._silent_us = settings.session_timeout_s / 2 * 1_000_000
        self._loop = asyncio.get_running_loop()
        self._group: Any = None
        self._turn = 0
        self._turns: Mapping[PartitionRef, int] = {}
        """The partitions that are ours, and since which assignment."""
        self._wishes: SimpleQueue[tuple[Callable[[list[TopicPartition]], Any], list[TopicPartition]]] = SimpleQueue()
        self._uncommitted: dict[PartitionRef, int] = {}
        """The offsets before which all is done in partitions that are ours, unless they are committed."""
        self._is_asked = False
        """Whether a commit is under way."""
        self._room = threading.Semaphore(_BATCHES_AHEAD)
        self._wanted = threading.Event()
        self._wanted.set()
        self._waits = 0
        """The waits for the owner, one after the other, that ended without its wanting more."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="waypost-log-consumer", daemon=True)

    def start(self) -> None:
        """Join the group; partitions come when it has settled."""
        self._thread.start()

    async def stop(self) -> None:
        """Leave the group, its partitions finished first."""
        self._stopping = True
        await asyncio.to_thread(self._thread.join)

    def group(self, turns: Mapping[PartitionRef, int]) -> Any | None:
        """Return the membership that may commit offsets of these partitions; None once one is not ours any more.

        From any thread. What is asked for here last is looked at first: a membership that is younger than the loss of
        a partition would let its former owner commit.
        """
        group = self._group
        ours = self._turns
        return group if all(ours.get(place) == turn for place, turn in turns.items()) else None

    def pause(self, places: Sequence[PartitionRef]) -> None:
        """Pause the partitions: receive nothing more of them for now."""
        self._wishes.put((self._consumer.pause, partitions_of(places)))

    def resume(self, places: Sequence[PartitionRef]) -> None:
        """Resume receiving the partitions."""
        self._wishes.put((self._consumer.resume, partitions_of(places)))

    def hold(self) -> None:
        """Bring nothing more until ``go_on``.

        It stays with the client: a partition that pauses drops what was fetched, and begins to fetch again up to a
        second after it is resumed. So they pause only where that lasts, since a member that does not poll is put out.
        """
        self._wanted.clear()

    def go_on(self) -> None:
        """Bring messages again."""
        self._wanted.set()

    def done(self, offsets: Mapping[PartitionRef, int]) -> None:
        """Note that everything before these offsets is done; committed where the consumer commits."""
        said = [TopicPartition(each.topic, each.partition, offset) for each, offset in offsets.items()]
        self._wishes.put((self._store, said))

    def _run(self) -> None:
        try:
            self._take_part()
            self._commit_all()
        except Exception as surprise:  # noqa: BLE001 - whatever it is, the loop must hear of it
            self._loop.call_soon_threadsafe(self._owner.failed, surprise)
        with suppress(KafkaException, SystemError):  # what a call of its met as it closed, which ends with it
            self._consumer.close()

    def _take_part(self) -> None:
        is_member = False
        while not self._stopping:
            if self._is_stalled() == is_member:
                if is_member:
                    self._consumer.unsubscribe()
                else:
                    self._consumer.subscribe(self._topics, self._on_assign, self._on_revoke, self._on_lost)
                is_member = not is_member
            self._fulfil()
            if self._may_poll():
                self._receive()

    def _fulfil(self) -> None:
        """Do what the loop wishes; wishes for partitions that have left meanwhile are pointless."""
        self._look_at_group()
        while not self._wishes.empty():
            act, partitions = self._wishes.get()
            ours = {(each.topic, each.partition) for each in self._consumer.assignment()}
            act([each for each in partitions if (each.topic, each.partition) in ours])

    def _store(self, done: list[TopicPartition]) -> None:
        """Keep these offsets for the next commit."""
        self._consumer.store_offsets(offsets=done)
        self._uncommitted |= {PartitionRef(each.topic, each.partition): each.offset for each in done}

    def _commit_all(self) -> None:
        """Commit what is done before the group is left; try again where that is refused.

        A broker answers a member that has joined again nothing else before all members have. What was asked of it
        meanwhile names a generation that is over, and librdkafka, when it is closed, tries once. The other members
        hear of a rebalance by their heartbeat, so that this waits a heartbeat longer than a hand-over.
        """
        self._fulfil()
        ends_s = time.monotonic() + HAND_OVER_S + self._heartbeat_s
        while self._uncommitted and time.monotonic() < ends_s:
            if not self._is_asked:
                self._consumer.commit(asynchronous=True)  # the other way may wait for ever
                self._is_asked = True
            self._consumer.poll(_POLL_S)  # what comes now is the next owner's to receive

    @property
    def _is_paused(self) -> bool:
        """Whether all partitions pause, for an owner that has wanted nothing for long."""
        return self._waits >= _WAITS_HELD

    def _may_poll(self) -> bool:
        """Tell whether to poll; where nothing is wanted, wait a little."""
        was_paused = self._is_paused
        if self._wanted.wait(0 if was_paused else _POLL_S):
            self._waits = 0
            if was_paused:
                self._consumer.resume(self._consumer.assignment())
            return True
        if not was_paused:
            self._waits += 1
            if self._waits == _WAITS_HELD:
                self._consumer.pause(self._consumer.assignment())
        return was_paused

    def _receive(self) -> None:
        """Bring the messages to the loop: the first one ends the wait, the others come along."""
        first = self._consumer.poll(_POLL_S)
        if first is None:
            return
        messages = (first, *self._consumer.consume(_BATCH - 1, 0))
        batch = [made for message in messages if (made := self._incoming(message))]
        while batch and not self._room.acquire(timeout=_POLL_S):
            if self._stopping:
                return
        if batch:
            self._loop.call_soon_threadsafe(self._bring, batch)

    def _bring(self, batch: Sequence[IncomingMessage]) -> None:
        self._room.release()
        self._owner.received(batch)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._stopping:
            return  # nothing is begun; and who asks for offsets while it leaves may be answered never
        self._turn += 1
        begun = [structs.replace(each, turn=self._turn) for each in beginnings(consumer, partitions)]
        self._turns = {**self._turns, **{each.place: each.turn for each in begun}}
        self._loop.call_soon_threadsafe(self._owner.assigned, begun)
        consumer.incremental_assign([each.as_partition() for each in begun])
        if self._is_paused:
            consumer.pause([each.as_partition() for each in begun])
        self._look_at_group()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._look_at_group()  # with the one before, the last transactions would be refused
        leaving = asyncio.run_coroutine_threadsafe(_whole(self._owner.revoked(places_of(partitions))), self._loop)
        try:
            leaving.result(HAND_OVER_S + 1)
        except TimeoutError:
            self._loop.call_soon_threadsafe(self._owner.lost, places_of(partitions))
        self._fulfil()
        self._let_go(places_of(partitions))
        consumer.incremental_unassign(partitions)

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Note a commit's answer, in the thread that polls; what was refused is committed with the next."""
        self._is_asked = False
        for each in partitions if error is None else ():
            place = PartitionRef(each.topic, each.partition)
            if each.error is None and self._uncommitted.get(place, each.offset + 1) <= each.offset:
                del self._uncommitted[place]

    def _on_statistics(self, text: str) -> None:
        """Read librdkafka's statistics, in the thread that polls."""
        statistics = _statistics.decode(text)
        self.is_connected = any(
            broker.state == "UP" and broker.rxidle < self._silent_us for broker in statistics.brokers.values()
        )
        self.lags = {
            PartitionRef(name, number): max(0, partition.consumer_lag)
            for name, topic in statistics.topics.items()
            for number, partition in topic.partitions.items()
        }

    def _look_at_group(self) -> None:
        """Refresh the membership; without a member's id there is none, and nobody would refuse its commits."""
        group = self._consumer.consumer_group_metadata()
        if self._consumer.memberid():
            self._group = group

    def _let_go(self, places: Sequence[PartitionRef]) -> None:
        gone = set(places)
        self._turns = {place: turn for place, turn in self._turns.items() if place not in gone}
        self._uncommitted = {place: offset for place, offset in self._uncommitted.items() if place not in gone}

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._let_go(places_of(partitions))
        self._loop.call_soon_threadsafe(self._owner.lost, places_of(partitions))


class _Partition(Struct):
    consumer_lag: int = 0


class _Topic(Struct):
    partitions: dict[int, _Partition]


class _Broker(Struct):
    state: str
    rxidle: int
    """Microseconds without an answer; heartbeats and empty fetches are answered all the time."""


class _Statistics(Struct):
    """The parts of librdkafka's statistics that are read; its partition -1 is none."""

    brokers: dict[str, _Broker]
    topics: dict[str, _Topic]


_statistics = msgspec.json.Decoder(_Statistics)


async def _whole(leaving: Awaitable[None]) -> None:
    await leaving
