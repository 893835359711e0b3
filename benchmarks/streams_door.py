"""What the doors of streams cost, beside batches over REST in the same run: read, accepted, acknowledged.

All of it is written at once, in one transaction of the server, and is for tomorrow, so that nothing is sent beside it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import redis
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined] # not among what its types export

from benchmarks.programs import in_rust
from benchmarks.stores import spent_s, up
from scripts.services.kafka import Kafka
from scripts.services.redis import Redis
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.bench.stores import Base, connected, embedded

MESSAGES = int(os.environ.get("MESSAGES", "20000"))
WORKERS = 2
ROUNDS = 3
BATCH = 500
PARTITIONS = 8
STREAM = "notifications"
WANTED_PER_S = {"Redis Stream": 20_000, "Kafka": 30_000}
DOORS = ("REST", *WANTED_PER_S)


def run() -> list[Row]:
    """Rounds in turn, one worker for each core; the medians.

    Each round begins with another door: a notification that comes later costs more, since the store is larger.
    """
    seen: dict[str, list[dict[str, float]]] = {door: [] for door in DOORS}
    with running(in_rust(), WORKERS, 0, stands=_on_both) as stack:
        write = {"Redis Stream": _redis_writer(stack), "Kafka": _kafka_writer(stack)}
        for door, wanted in {"Redis Stream": 1_000, "Kafka": 1_000}.items():
            _through(stack, door, write[door], 0, wanted)
        first = 1_000
        for n in range(ROUNDS):
            for door in (*DOORS[n % len(DOORS) :], *DOORS[: n % len(DOORS)]):
                measure = partial(_through, stack, door, write[door]) if door in write else partial(_over_rest, stack)
                seen[door].append(measure(first, MESSAGES))
            first += MESSAGES
    medians = {
        door: {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
        for door, rounds in seen.items()
    }
    return [each for door in DOORS for each in _rows(door, medians[door], medians["REST"])]


def _rows(door: str, median: dict[str, float], rest: dict[str, float]) -> Iterator[Row]:
    what = f"{door}, {BATCH} a batch"
    wanted = WANTED_PER_S.get(door)
    against = f"wanted {wanted:,}" if wanted else None
    yield row(
        "streams",
        f"{what}: accepted a second",
        median["per_s"],
        "1/s",
        against,
        median["per_s"] / (wanted or median["per_s"]),
    )
    against, ratio = f"REST {rest['own_us']:.1f}", median["own_us"] / rest["own_us"]
    yield row("streams", f"{what}: Waypost's CPU a notification", median["own_us"], "µs", against, ratio)
    if door != "REST":
        yield row("streams", f"{what}: the server's CPU a message", median["server_us"], "µs")


def _on_both(folder: Path, exits: ExitStack) -> Base:
    """SQLite, and both servers as somebody else's."""
    redis_server, kafka = (
        exits.enter_context(up(Redis, folder / "redis")),
        exits.enter_context(up(Kafka, folder / "kafka")),
    )
    admin = AdminClient({"bootstrap.servers": kafka.url})
    for made in admin.create_topics([NewTopic(STREAM, PARTITIONS, 1)]).values():
        made.result(60)
    sources = {
        "redis": {"app": APP, "batch": BATCH, "redis": {"url": redis_server.url, "stream": STREAM}},
        "kafka": {"app": APP, "batch": BATCH, "kafka": {"bootstrap": kafka.url, "topic": STREAM}},
    }
    base = embedded(folder, exits)
    spent = {"Redis Stream": redis_server, "Kafka": kafka}
    return replace(
        base,
        settings=base.settings | {"sources": sources},
        servers={"redis": redis_server.url, "kafka": kafka.url},
        cpu_s=lambda: {name: spent_s(server) for name, server in spent.items()},
    )


Write = Callable[[list[bytes]], None]


def _redis_writer(stack: BenchStack) -> Write:
    client = redis.Redis.from_url(stack.base.servers["redis"])

    def write(messages: list[bytes]) -> None:
        pipeline = client.pipeline(transaction=True)
        for each in messages:
            pipeline.xadd(STREAM, {"payload": each})
        pipeline.execute()

    return write


def _kafka_writer(stack: BenchStack) -> Write:
    producer = Producer({"bootstrap.servers": stack.base.servers["kafka"], "transactional.id": "bench", "linger.ms": 5})
    producer.init_transactions(60)

    def write(messages: list[bytes]) -> None:
        producer.begin_transaction()
        for n, each in enumerate(messages):  # evenly, as in the long run: in a moment a producer fills a few at random
            producer.produce(STREAM, each, partition=n % PARTITIONS)
            producer.poll(0)
        producer.commit_transaction(60)

    return write


def _through(stack: BenchStack, door: str, write: Write, first: int, count: int) -> dict[str, float]:
    """From when the messages are there until the last is accepted."""
    wanted = _accepted(stack) + count
    messages = _messages(first, count, door)
    write(messages)
    began_s, before_s, server_s = time.perf_counter(), stack.cpu_s(), stack.base.cpu_s()[door]
    had = _accepted(stack) - (wanted - count)
    while _accepted(stack) < wanted:
        time.sleep(0.05)  # the product tells nobody when a stream is at its end
    seconds, left = time.perf_counter() - began_s, max(1, count - had)  # the few to warm up may be there already
    return {
        "per_s": left / seconds,
        "own_us": (stack.cpu_s() - before_s) / left * 1e6,
        "server_us": (stack.base.cpu_s()[door] - server_s) / left * 1e6,
    }


def _messages(first: int, count: int, door: str) -> list[bytes]:
    said: dict[str, Any] = {"title": "Your parcel is here", "scheduled_at": _tomorrow()}
    return [
        msgspec.json.encode({"user_id": f"{door}-{n % 1_000}", "body": f"Left at the front door, number {n}.", **said})
        for n in range(first, first + count)
    ]


def _over_rest(stack: BenchStack, first: int, count: int) -> dict[str, float]:
    """The same in batches, four at once, each notification with an idempotency key's cost in dedup."""
    before_s = stack.cpu_s()
    fields = f'"scheduled_at":"{_tomorrow()}"'
    wishes: dict[str, Any] = {"batch": BATCH, "connections": 4, "first": first, "count": count}
    seen = stack.load(fields=fields, **wishes).result()
    return {"per_s": count / seen["seconds"], "own_us": (stack.cpu_s() - before_s) / count * 1e6}


def _tomorrow() -> str:
    return (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")


def _accepted(stack: BenchStack) -> int:
    """From the store itself: /metrics would be work for Waypost."""
    with connected(stack.base.url, read_only=True) as connection:
        return int(connection.execute("SELECT value FROM sequence WHERE name = 'notification'").fetchone()[0])
