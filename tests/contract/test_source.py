"""Sources: each message with one member at a time, at least once, until it is acknowledged."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec import structs

from scripts.services.redis import RedisCluster
from tests.contract.sources import (
    KafkaSourceUnderTest,
    RedisSourceUnderTest,
    SourceUnderTest,
    kafka_source_under_test,
    payloads,
    read_by,
    redis_source_under_test,
)
from tests.journeys.harness import until
from waypost.domain.errors import ConfigurationError, Unavailable
from waypost.ports.source import OWN_KEY, PAYLOAD, TRACE, RefusedMessage
from waypost.stores.kafka.settings import KafkaSourceSettings, LibrdkafkaProperty
from waypost.stores.kafka.source import READ_AHEAD, KafkaSource
from waypost.stores.redis.cluster import ClusterClient
from waypost.stores.redis.commands import RedisAway
from waypost.stores.redis.settings import RedisSettings, RedisSourceSettings
from waypost.stores.redis.source import NOBODY, RedisSource
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

ABC = (b"a", b"b", b"c")


@pytest_asyncio.fixture(
    params=[pytest.param("redis", marks=pytest.mark.engines), pytest.param("kafka", marks=pytest.mark.engines)]
)
async def source(request: pytest.FixtureRequest) -> AsyncIterator[SourceUnderTest]:
    """With nothing in it."""
    given = request.getfixturevalue
    if request.param == "redis":
        async with redis_source_under_test(given("redis_url")) as on_redis:
            yield on_redis
    else:
        async with kafka_source_under_test(given("kafka_bootstrap"), given("kafka_prefix")) as on_kafka:
            yield on_kafka


@pytest_asyncio.fixture
async def on_redis(redis_url: str) -> AsyncIterator[RedisSourceUnderTest]:
    """A Redis Stream."""
    async with redis_source_under_test(redis_url) as under_test:
        yield under_test


@pytest_asyncio.fixture
async def on_kafka(kafka_bootstrap: str, kafka_prefix: str) -> AsyncIterator[KafkaSourceUnderTest]:
    """A topic."""
    async with kafka_source_under_test(kafka_bootstrap, kafka_prefix) as under_test:
        yield under_test


async def test_what_is_acknowledged_is_read_no_more_and_all_else_again_at_the_same_place(
    source: SourceUnderTest,
) -> None:
    await source.write(*ABC)
    one = await source.member()
    first = {each.fields[PAYLOAD]: each for each in await read_by(one, 3)}
    await one.ack([first[b"a"]])
    await source.crash(one)
    two = await source.member()
    again = {each.fields[PAYLOAD]: each for each in await read_by(two, 2)}
    assert {b"b", b"c"} <= set(again)
    assert all(again[each].place == first[each].place for each in (b"b", b"c"))
    assert len({each.place for each in first.values()}) == 3
    await two.ack(list(again.values()))
    assert await source.left() == 0


async def test_members_share_and_nobody_reads_what_another_holds(source: SourceUnderTest) -> None:
    """Of a topic a partition that moves may be read again by its next owner; at the end all is acknowledged."""
    members = [await source.member() for _ in range(2)]
    said = [b"%d" % n for n in range(400)]
    seen: Counter[bytes] = Counter()
    over = asyncio.Event()

    async def work(number: int) -> None:
        while not over.is_set():
            messages = await members[number].read(7)
            seen.update(each.fields[PAYLOAD] for each in messages)
            await members[number].ack(messages)

    async def is_through() -> bool:
        return len(seen) == len(said) and await source.unacknowledged() == 0

    working = asyncio.gather(*(work(number) for number in range(2)))
    await source.write(*said)
    await until(is_through, "everything is acknowledged")
    over.set()
    await working
    if source.stream == "jobs":
        assert seen.total() == len(said)
    for member in members:
        await source.crash(member)
    assert await source.left() == 0


async def test_a_member_that_ends_leaves_what_it_held_to_the_others_at_once(source: SourceUnderTest) -> None:
    await source.write(*ABC)
    one = await source.member()
    await read_by(one, 3)
    if isinstance(source, KafkaSourceUnderTest):
        await source.crash(one)
    else:
        await one.stop()
    two = await source.member()
    assert set(payloads(await read_by(two, 3))) == set(ABC)


async def test_what_is_buried_is_whole_with_its_reason_and_read_no_more(source: SourceUnderTest) -> None:
    await source.write(b"good", b"\xff bad")
    one = await source.member()
    messages = {each.fields[PAYLOAD]: each for each in await read_by(one, 2)}
    await one.bury([RefusedMessage(messages[b"\xff bad"], "invalid_json", "no JSON")])
    assert await source.dead() == [("invalid_json", b"\xff bad")]
    await one.ack([messages[b"good"]])
    assert (await one.behind()).held == 0
    await source.crash(one)
    assert await source.left() == 0


async def test_what_is_there_can_be_looked_at_without_reading(source: SourceUnderTest) -> None:
    """What ``check-config --connect`` says."""
    await source.write(*ABC)
    said = await source.reader().look()
    expected = r"Redis 7.*, jobs: 3 entries" if source.stream == "jobs" else r"Kafka, 1 broker, .*: 4 partitions"
    assert re.fullmatch(expected, said)
    assert set(payloads(await read_by(await source.member(), 3))) == set(ABC)


async def test_a_topic_that_is_not_there_is_named(on_kafka: KafkaSourceUnderTest) -> None:
    with pytest.raises(Unavailable, match="there is no topic"):
        await KafkaSource(structs.replace(on_kafka.settings, topic="another")).look()


async def test_what_was_never_started_can_be_stopped(source: SourceUnderTest) -> None:
    """Where another door of the worker cannot be opened."""
    await source.reader().stop()


async def test_what_librdkafka_refuses_is_a_fault_of_the_configuration() -> None:
    options = {LibrdkafkaProperty("sasl.mechanism"): "secret", LibrdkafkaProperty("no.such"): "secret"}
    settings = KafkaSourceSettings(bootstrap="127.0.0.1:1", topic="notifications", options=options)
    with pytest.raises(ConfigurationError, match="_INVALID_ARG") as refused:
        await KafkaSource(settings).start()
    assert "secret" not in str(refused.value)


async def test_a_producers_own_key_and_its_trace_come_along(source: SourceUnderTest) -> None:
    await source.write(b"a", key=b"mine", trace=b"there")
    (message,) = await read_by(await source.member(), 1)
    assert message.fields == {PAYLOAD: b"a", OWN_KEY: b"mine", TRACE: b"there"}


async def test_more_than_is_received_ahead_is_read_all_the_same(on_kafka: KafkaSourceUnderTest) -> None:
    """Nothing more is received while there is enough, partitions pause where that lasts, and both end."""
    said = [b"%d" % n for n in range(3 * READ_AHEAD)]
    await on_kafka.write(*said)
    one = await on_kafka.member()
    consumer = one._consumer
    assert consumer is not None

    async def pauses() -> bool:
        return consumer._is_paused

    await until(pauses, "partitions pause for a reader that reads nothing")
    held = (await one.behind()).held
    assert held is not None and READ_AHEAD <= held < len(said)
    messages = await read_by(one, len(said), 500)
    assert payloads(messages) == sorted(said)
    assert not consumer._is_paused
    for message in reversed(messages):
        await one.ack([message])
    assert await on_kafka.left() == 0


async def test_a_living_member_takes_over_what_a_dead_one_held_too_long(on_redis: RedisSourceUnderTest) -> None:
    on_redis.settings = structs.replace(on_redis.settings, claim_idle_ms=100)
    living, dead = await on_redis.member(), await on_redis.member()
    await living.read(1)
    await on_redis.write(*ABC)
    await read_by(dead, 3)
    await dead._reading.stop()
    await dead._writing.stop()
    assert set(payloads(await read_by(living, 3))) == set(ABC)


async def test_a_group_begins_with_the_oldest_entry_and_one_that_exists_goes_on(on_redis: RedisSourceUnderTest) -> None:
    await on_redis.write(b"old")
    await on_redis.wire.execute([("XGROUP", "CREATE", "jobs", "waypost", "$")])
    await on_redis.write(b"new")
    assert payloads(await read_by(await on_redis.member(), 1)) == [b"new"]
    on_redis.settings = structs.replace(on_redis.settings, group="another")
    assert payloads(await read_by(await on_redis.member(), 2)) == [b"new", b"old"]


async def test_an_emptied_redis_is_read_again(on_redis: RedisSourceUnderTest) -> None:
    """Whoever reads is told once that the group is gone, and makes it again."""
    one = await on_redis.member()
    await one.read(10)
    await on_redis.wire.execute([("FLUSHDB",)])
    await on_redis.write(b"a")
    with pytest.raises(RedisAway, match="NOGROUP"):
        await one.read(10)
    assert payloads(await read_by(one, 1)) == [b"a"]


async def test_readers_that_ended_leave_no_names_behind(on_redis: RedisSourceUnderTest) -> None:
    await on_redis.write(*ABC)
    one, two = await on_redis.member(), await on_redis.member()
    await one.ack(await read_by(one, 3))
    await two.read(1)
    await on_redis.write(b"d")
    await read_by(one, 1)
    await one.stop()
    await two.stop()
    (readers,) = await on_redis.wire.execute([("XINFO", "CONSUMERS", "jobs", "waypost")])
    assert [(each[1], each[3]) for each in readers] == [(NOBODY.encode(), 1)]


async def test_an_entry_of_many_fields_is_buried_all_the_same(on_redis: RedisSourceUnderTest) -> None:
    """More than Lua can take at once, and than anybody wants to read."""
    fields = [part for n in range(6_000) for part in (f"f{n}", "x")]
    await on_redis.wire.execute([("XADD", "jobs", "*", PAYLOAD, b"many", *fields)])
    one = await on_redis.member()
    (message,) = await read_by(one, 1)
    assert len(message.fields) == 6_001
    await one.bury([RefusedMessage(message, "invalid_request", "too much")])
    assert await on_redis.dead() == [("invalid_request", b"many")]


async def test_what_was_taken_over_and_done_with_is_not_buried_twice(on_redis: RedisSourceUnderTest) -> None:
    await on_redis.write(b"bad")
    slow = await on_redis.member()
    refused = [RefusedMessage(each, "invalid_json", "no JSON") for each in await read_by(slow, 1)]
    for _ in range(2):
        await slow.bury(refused)
    assert len(await on_redis.dead()) == 1


async def test_after_a_failure_less_is_asked_for(on_redis: RedisSourceUnderTest) -> None:
    """An answer that is too large to come in time comes in parts."""
    await on_redis.write(*[b"%d" % n for n in range(64)])
    one = await on_redis.member()
    assert isinstance(one, RedisSource)
    sizes = [len(await one.read(16)) for _ in range(4)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


async def test_a_cluster_has_streams_and_their_dead_letters_in_one_slot(redis_cluster: RedisCluster) -> None:
    url, *_ = redis_cluster.url.split(",")
    settings = RedisSourceSettings(url=url, cluster=True, stream=f"jobs-{uuid.uuid4()}", timeout_s=10)
    nodes = ClusterClient(RedisSettings(url=url, cluster=True, timeout_s=10), Silent())
    await nodes.start()
    await nodes.execute([("XADD", settings.stream, "*", PAYLOAD, each) for each in ABC])
    one = RedisSource(settings, measures=True)
    await one.start()
    good, bad, left = await read_by(one, 3)
    await one.ack([good])
    await one.bury([RefusedMessage(bad, "invalid_json", "no JSON")])
    assert (await one.behind()).held == 1
    await one.stop()
    assert await nodes.execute([("XLEN", settings.dead_letters_stream)]) == [1]
    two = RedisSource(settings, measures=True)
    await two.start()
    assert await read_by(two, 1) == [left]
    await two.stop()
    await nodes.stop()
