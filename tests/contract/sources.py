"""Sources under test: a stream or topic of their own, and members that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its types do not say what it exports

from tests.contract.log import ends_of
from waypost.ports.source import PAYLOAD, Foreign, Source
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.settings import KafkaSourceSettings
from waypost.stores.kafka.source import KafkaSource
from waypost.stores.redis.settings import RedisSettings, RedisSourceSettings
from waypost.stores.redis.source import RedisSource
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

PARTITIONS = 4
IDLE_MS = 60_000
_WAIT_S = 60.0


class SourceUnderTest(Protocol):
    """One engine's stream with its readers."""

    stream: str

    async def write(self, *payloads: bytes, key: bytes | None = None, trace: bytes | None = None) -> None:
        """Append messages, with an idempotency key of their own and a place in a trace where these are given."""
        ...

    def reader(self) -> Source:
        """One that is still to be started."""
        ...

    async def member(self) -> Source:
        """One more process that reads."""
        ...

    async def crash(self, member: Source) -> None:
        """It says nothing any more, and what it held is handed out again."""
        ...

    async def left(self) -> int:
        """How many messages would still be handed out when all members are gone."""
        ...

    async def unacknowledged(self) -> int:
        """How many messages the server does not know to be acknowledged, whoever has them."""
        ...

    async def dead(self) -> list[tuple[str, bytes]]:
        """The dead letters: code and payload."""
        ...


class RedisSourceUnderTest:
    """On a server."""

    stream = "jobs"

    def __init__(self, url: str, wire: SinglePrimary) -> None:
        self.settings = RedisSourceSettings(url=url, stream=self.stream, claim_idle_ms=IDLE_MS, timeout_s=10)
        self.wire = wire
        self.members: list[RedisSource] = []

    async def write(self, *payloads: bytes, key: bytes | None = None, trace: bytes | None = None) -> None:
        """See SourceUnderTest."""
        named = ((b"idempotency_key", key), (b"traceparent", trace))
        more = [part for name, value in named if value is not None for part in (name, value)]
        await self.wire.execute([("XADD", self.stream, "*", PAYLOAD, each, *more) for each in payloads])

    async def member(self) -> RedisSource:
        """See SourceUnderTest."""
        source = self.reader()
        await source.start()
        return source

    def reader(self) -> RedisSource:
        """See SourceUnderTest."""
        source = RedisSource(self.settings, measures=True)
        source._block_ms = 20
        self.members.append(source)
        return source

    async def crash(self, member: Source) -> None:
        """See SourceUnderTest; the server's clock cannot be moved, but told how long something has been idle."""
        assert isinstance(member, RedisSource)
        await member._reading.stop()
        await member._writing.stop()
        (held,) = await self.wire.execute([("XPENDING", self.stream, "waypost", "-", "+", 1_000)])
        aged = [("XCLAIM", self.stream, "waypost", who, 0, id_, "IDLE", IDLE_MS, "JUSTID") for id_, who, *_ in held]
        await self.wire.execute(aged) if aged else None

    async def left(self) -> int:
        """See SourceUnderTest."""
        length, groups = await self.wire.execute([("XLEN", self.stream), ("XINFO", "GROUPS", self.stream)])
        if not groups:
            return int(length)
        (group,) = [dict(zip(each[::2], each[1::2], strict=True)) for each in groups]
        (unread,) = await self.wire.execute([("XRANGE", self.stream, b"(" + group[b"last-delivered-id"], "+")])
        return int(group[b"pending"]) + len(unread)

    async def unacknowledged(self) -> int:
        """See SourceUnderTest."""
        return await self.left()

    async def dead(self) -> list[tuple[str, bytes]]:
        """See SourceUnderTest."""
        (entries,) = await self.wire.execute([("XRANGE", f"{self.stream}.dead", "-", "+")])
        letters = [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in entries]
        return [(each[b"waypost:code"].decode(), each[PAYLOAD]) for each in letters]


class KafkaSourceUnderTest:
    """On a server."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.stream = f"{prefix}notifications"
        self.settings = KafkaSourceSettings(
            bootstrap=bootstrap, topic=self.stream, group=f"{prefix}intake", session_timeout_s=6
        )
        self.admin = AdminClient(self.settings.client())
        self._producer = Producer(self.settings.client())
        self.members: list[KafkaSource] = []

    async def make(self, partitions: int = PARTITIONS) -> None:
        """Make the topic."""
        for made in self.admin.create_topics([NewTopic(self.stream, partitions, 1)]).values():
            await asyncio.wrap_future(made)

    async def write(self, *payloads: bytes, key: bytes | None = None, trace: bytes | None = None) -> None:
        """See SourceUnderTest."""
        headers: list[tuple[str, str | bytes | None]] = [("trace", b"1")]
        if key is not None:
            headers.append(("idempotency_key", key))
        if trace is not None:
            headers.append(("traceparent", trace))
        for each in payloads:
            self._producer.produce(self.stream, each, headers=headers)
        await asyncio.to_thread(self._producer.flush)

    async def member(self) -> KafkaSource:
        """See SourceUnderTest."""
        source = self.reader()
        await source.start()
        return source

    def reader(self) -> KafkaSource:
        """See SourceUnderTest."""
        self.members.append(KafkaSource(self.settings))
        return self.members[-1]

    async def crash(self, member: Source) -> None:
        """See SourceUnderTest; it leaves the group, which spares the session time-out."""
        assert isinstance(member, KafkaSource)
        self.members.remove(member)
        await member.stop()

    async def left(self) -> int:
        """See SourceUnderTest."""
        while self.members:
            await self.members.pop().stop()
        return await self.unacknowledged()

    async def unacknowledged(self) -> int:
        """See SourceUnderTest: members say so about once a second."""
        committed = await self.committed()
        return sum(end - committed[place] for place, end in (await ends_of(self.admin, list(committed))).items())

    async def committed(self) -> dict[PartitionRef, int]:
        """List where the group goes on in each partition."""
        at = [TopicPartition(self.stream, number) for number in range(PARTITIONS)]
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.settings.group, at)])
        found = await asyncio.wrap_future(asked[self.settings.group])
        return {PartitionRef(each.topic, each.partition): max(0, each.offset) for each in found.topic_partitions or ()}

    async def group_state(self) -> ConsumerGroupState:
        """Ask whether the members' group is settled."""
        (asked,) = self.admin.describe_consumer_groups([self.settings.group]).values()
        state: ConsumerGroupState = (await asyncio.wrap_future(asked)).state
        return state

    async def dead(self) -> list[tuple[str, bytes]]:
        """See SourceUnderTest."""
        return await asyncio.to_thread(self._dead)

    def _dead(self) -> list[tuple[str, bytes]]:
        """All that the topic holds, by a reader without a past."""
        topic = self.settings.dead_letters_topic
        reader = Consumer({**self.settings.client(), "group.id": f"{topic}.test", "enable.auto.commit": False})
        found: list[tuple[str, bytes]] = []
        for number in reader.list_topics(topic, timeout=_WAIT_S).topics[topic].partitions:
            at = TopicPartition(topic, number, 0)
            _, end = reader.get_watermark_offsets(at, timeout=_WAIT_S)
            reader.assign([at])
            for _ in range(end):
                message = reader.poll(_WAIT_S)
                assert message is not None
                headers: Any = dict(message.headers() or ())
                assert headers["trace"] == b"1"
                found.append((headers["waypost-code"].decode(), message.value() or b""))
        reader.close()
        return found


@asynccontextmanager
async def redis_source_under_test(url: str) -> AsyncIterator[RedisSourceUnderTest]:
    """With nothing in it."""
    wire = SinglePrimary(RedisSettings(url=url, timeout_s=10), Silent())
    await wire.start()
    under_test = RedisSourceUnderTest(url, wire)
    try:
        yield under_test
    finally:
        for member in under_test.members:
            await member.stop()
        await wire.stop()


@asynccontextmanager
async def kafka_source_under_test(bootstrap: str, prefix: str) -> AsyncIterator[KafkaSourceUnderTest]:
    """With nothing in it."""
    under_test = KafkaSourceUnderTest(bootstrap, prefix)
    await under_test.make()
    try:
        yield under_test
    finally:
        while under_test.members:
            await under_test.members.pop().stop()


async def read_by(source: Source, wanted: int, n: int = 100) -> list[Foreign]:
    """Read until *wanted* messages have come."""
    found: list[Foreign] = []
    async with asyncio.timeout(_WAIT_S):
        while len(found) < wanted:
            found += await source.read(n)
    return found


def payloads(messages: list[Foreign]) -> list[bytes]:
    """What they say."""
    return sorted(each.fields[PAYLOAD] for each in messages)


def body(n: int, more: Mapping[str, Any] = {}) -> bytes:
    """A message that is told from others."""
    return msgspec.json.encode({"user_id": f"user-{n}", "title": f"number {n}", **more})
