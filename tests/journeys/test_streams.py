"""Streams as doors: each message is exactly one notification, whatever is killed in between; poison is put aside."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pysqlite3 import dbapi2 as sqlite3

from scripts.services.kafka import Kafka
from scripts.services.redis import Redis
from tests.contract.sources import (
    KafkaSourceUnderTest,
    SourceUnderTest,
    kafka_source_under_test,
    redis_source_under_test,
)
from tests.journeys.harness import Service, running, until
from tests.survival import Survived
from waypost.domain.errors import Unavailable

pytestmark = pytest.mark.asyncio

KILLS = 4
POISON = (b"not JSON", b'{"user_id": "poison"}', b"\xff", b"[" * 5_000, b'{"user_id": ";--", "titel": "a"}')
HOSTILE = (
    "'; DROP TABLE notification; --",
    "<script>alert(1)</script>",
    "${jndi:ldap://x}",
    "\u202e\U0001f4a5",
    "%s%n{0}",
)
"""Texts that some program some day took for something else."""


class Writer:
    """Another program, which writes one message after the other; every tenth of them is poison."""

    def __init__(self, under_test: SourceUnderTest) -> None:
        self.sure: list[str] = []
        """Users of which one message was written."""
        self.unsure: list[str] = []
        """Users of which nobody answered whether it was."""
        self.poison = 0
        self._under_test = under_test
        self._stopping = False
        self._grown = asyncio.Event()

    async def run(self) -> None:
        """Write until told to stop."""
        n = 0
        while not self._stopping:
            user, n = f"user-{n}", n + 1
            try:
                if n % 10 == 0:
                    await self._under_test.write(POISON[n // 10 % len(POISON)])
                    self.poison += 1
                    continue
                said = {"user_id": user, "title": HOSTILE[n % len(HOSTILE)], "data": {"text": HOSTILE[n % 3]}}
                await self._under_test.write(msgspec.json.encode(said))
                self.sure.append(user)
            except Unavailable:
                self.unsure.append(user)
                await asyncio.sleep(0.05)  # nothing tells when the server is there again
            self._grown.set()

    async def grown(self, count: int) -> None:
        """Return when so many more were written."""
        wanted = len(self.sure) + count
        while len(self.sure) < wanted:
            self._grown.clear()
            await self._grown.wait()

    def stop(self) -> None:
        """Write nothing more."""
        self._stopping = True


async def survive(
    service: Service,
    under_test: SourceUnderTest,
    rng: random.Random,
    restart: Callable[[], Awaitable[None]] | None = None,
    kills: int = KILLS,
) -> Writer:
    """Kill workers while somebody writes, and the engine once; when all is read, all is as it should be.

    One of two at a time: without any the next victim would be their supervisor, whom nobody starts again.
    """

    async def both() -> bool:
        return len(service.worker_pids()) == 2

    writer = Writer(under_test)
    writing = asyncio.create_task(writer.run())
    for n in range(kills):
        await writer.grown(rng.randrange(20, 80))
        await until(both, "both workers run")
        await service.kill(rng.choice(service.worker_pids()))
        if n == kills // 2 and restart is not None:
            await restart()
    await writer.grown(50)
    writer.stop()
    await writing

    async def all_read() -> bool:
        with contextlib.suppress(Unavailable):
            return await under_test.left() == 0
        return False

    await until(all_read, "every message is acknowledged")
    assert service.process is not None
    service.process.send_signal(signal.SIGTERM)
    assert await service.ended() == 0
    check(service, writer)
    return writer


def check(service: Service, writer: Writer) -> None:
    """Each message is one notification, its text as it was written, and nothing of it in the log."""
    with contextlib.closing(sqlite3.connect(service.store_path)) as store:
        rows = store.execute("SELECT user_id FROM notification").fetchall()
    accepted = Counter(user for (user,) in rows)
    assert accepted == Counter([*writer.sure, *(user for user in writer.unsure if user in accepted)])
    refused = service.log("message.refused")
    assert {each["code"] for each in refused} == {"invalid_json", "invalid_request"}
    assert not service.log("request.failed", "stage.failed")
    written = (service.directory / "serve.log").read_text()
    assert not [text for text in (*HOSTILE, "titel", "not JSON") if text in written]


@pytest.mark.survives("workers killed, Redis stopped", on="Redis Stream as a door", so="each entry accepted once")
async def test_each_entry_of_a_redis_stream_is_one_notification(
    tmp_path: Path, rng: random.Random, redis_alone: Redis, survived: Survived
) -> None:
    async with redis_source_under_test(redis_alone.url) as under_test:
        await under_test.wire.execute([("FLUSHALL",)])
        settings = {"url": redis_alone.url, "stream": under_test.stream, "claim_idle_ms": 1_000}
        sources = {"orders": {"app": "demo", "batch": 20, "redis": settings}}

        async def restart() -> None:
            await asyncio.to_thread(redis_alone.stop)
            await until(lambda: logged(service, "source.away"), "Redis is missed")
            status, ready = await service.ask("GET", "/health/ready")
            assert status == 200 or ready["checks"]["store"] == "ok"
            await asyncio.to_thread(redis_alone.start)

        async with running(tmp_path, workers=2, sources=sources) as service:
            writer = await survive(service, under_test, rng, restart)
            dead = Counter(code for code, _ in await under_test.dead())
        assert dead.total() >= writer.poison
        survived(accepted=len(writer.sure), kills=KILLS, dead_letters=dead.total())


async def test_a_topic_is_read_on_by_whoever_comes_after_a_dead_worker(
    tmp_path: Path, rng: random.Random, kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """Each message is one notification here, too; the longer detail is told by ``make faults``."""
    async with kafka_source_under_test(kafka_bootstrap, kafka_prefix) as under_test:
        sources = {"orders": {"app": "demo", "batch": 20, "kafka": kafka_settings(under_test)}}
        async with running(tmp_path, workers=2, sources=sources) as service:
            writer = await survive(service, under_test, rng, kills=1)
        assert Counter(code for code, _ in await under_test.dead()).total() >= writer.poison


@pytest.mark.long
@pytest.mark.survives("workers killed, Kafka killed", on="Kafka topic as a door", so="each message accepted once")
async def test_each_message_of_a_topic_is_one_notification(
    tmp_path: Path, rng: random.Random, kafka_alone: Kafka, survived: Survived
) -> None:
    prefix = f"test-{rng.randrange(1 << 32)}."
    async with kafka_source_under_test(kafka_alone.url, prefix) as under_test:
        sources = {"orders": {"app": "demo", "batch": 20, "kafka": kafka_settings(under_test)}}

        async def restart() -> None:
            await asyncio.to_thread(kafka_alone.kill)
            await asyncio.to_thread(kafka_alone.start)

        async with running(tmp_path, workers=2, sources=sources) as service:
            writer = await survive(service, under_test, rng, restart)
        dead = Counter(code for code, _ in await under_test.dead())
        assert dead.total() >= writer.poison
        survived(accepted=len(writer.sure), kills=KILLS, dead_letters=dead.total())


def kafka_settings(under_test: KafkaSourceUnderTest) -> dict[str, Any]:
    """As an operator writes them."""
    wanted = ("bootstrap", "topic", "group", "session_timeout_s")
    return {name: getattr(under_test.settings, name) for name in wanted}


async def logged(service: Service, event: str) -> bool:
    """Whether it was."""
    return bool(service.log(event))
