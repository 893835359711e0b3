"""The door of a stream: what cannot be accepted now waits and holds back the rest, what never can be is put aside."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from tests.adapters.redis.noted import Noted
from tests.contract.clock import StoppedClock
from tests.contract.sources import RedisSourceUnderTest, body, redis_source_under_test
from tests.memory.dedup import MemoryDedup
from tests.memory.devices import MemoryDevices
from tests.memory.store import MemoryStore
from tests.memory.templates import MemoryTemplates
from tests.memory.work import MemoryWork
from tests.traced import Recorder
from tests.unbounded import UNBOUNDED
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain.backlog import Backlog
from waypost.domain.device import Platform, is_token_alone
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import AppId, CallerId
from waypost.domain.limits import FixedWindow
from waypost.domain.notification import Lane
from waypost.domain.scope import EVERY_SCOPE
from waypost.domain.submission import Defaults
from waypost.domain.time import HOUR_MS
from waypost.entrypoints.limits import Bounds, EntrypointLimits
from waypost.entrypoints.streams.stream_intake import BATCHES_AT_ONCE, StreamIntake
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.intake import Caller, Intake
from waypost.pipeline.template_choice import StoredTemplates
from waypost.ports.source import Foreign
from waypost.ports.work import Acceptance, Accepted, InProgress, NewNotification, Replay
from waypost.runtime.clock import RandomIds
from waypost.stores.redis.source import RedisSource
from waypost.telemetry import Event, Metric
from waypost.telemetry.tracing import Step, Tracing

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

APP = AppId("demo")
BATCH = 5


class Reluctant(MemoryWork):
    """A store that can be away, hold a key for somebody else, and stumble over one notification."""

    def __init__(self, store: MemoryStore, clock: StoppedClock) -> None:
        super().__init__(store, clock)
        self.away: Unavailable | None = None
        self.held = 0
        """How often it says of everything that somebody else is at it."""
        self.stumbles_over = ""
        self.calls = 0
        self.accepted: list[str] = []

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work."""
        self.calls += 1
        if self.away is not None:
            raise self.away
        if self.held:
            self.held -= 1
            return [InProgress(1) for _ in batch]
        arrivals = [each for each in batch if isinstance(each, NewNotification)]
        if self.stumbles_over in [each.notification.user_id for each in arrivals]:
            raise KeyError("nobody thought of this")
        answers = await super().accept(batch)
        for each, answer in zip(arrivals, answers, strict=True):
            if isinstance(answer, Accepted):
                self.accepted.append(each.notification.user_id)
        return answers


class Bench:
    """One source on a real server, with a store that does as a test says."""

    def __init__(self, source: RedisSourceUnderTest) -> None:
        self.source = source
        self.clock = StoppedClock()
        self.store = MemoryStore()
        self.work = Reluctant(self.store, self.clock)
        self.devices = MemoryDevices(self.store)
        self.noted = Noted()
        self.full = False
        self.tracing: Tracing | None = None

    @asynccontextmanager
    async def door(
        self, reader: RedisSource | None = None, limits: EntrypointLimits = UNBOUNDED
    ) -> AsyncIterator[StreamIntake]:
        """Open until the block ends."""
        intake = Intake(
            self.work,
            MemoryDedup(self.store, self.clock),
            self.clock,
            RandomIds(self.clock),
            self.noted,
            {APP: Defaults()},
            DirectDevices(self.devices, {APP: {Platform("android"): is_token_alone}}),
            StoredTemplates(MemoryTemplates()),
            backlog=lambda: Backlog(1, True, {(Lane.NORMAL, APP): 1} if self.full else {}),
            tracing=self.tracing,
        )
        door = StreamIntake(
            "orders",
            reader or self.source.reader(),
            intake,
            Caller(APP, CallerId("source:orders"), EVERY_SCOPE),
            self.noted,
            BATCH,
            limits,
        )
        await door.start()
        try:
            yield door
        finally:
            await door.stop()

    async def all_done(self) -> None:
        """Wait until nothing is left to read or to acknowledge."""
        async with asyncio.timeout(60):
            while await self.source.left():  # noqa: ASYNC110 - the server tells nobody when a group is through
                await asyncio.sleep(0.01)

    def taken(self) -> dict[str, int]:
        """By what became of it."""
        counts = {result: self.noted.counts[Metric.SOURCE_TAKEN, f"orders {result}"] for result in RESULTS}
        return {result: n for result, n in counts.items() if n}


RESULTS = ("accepted", "deduplicated", "refused")


@pytest_asyncio.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    """With nothing in it."""
    async with redis_source_under_test(redis_url) as source:
        yield Bench(source)


@pytest.mark.parametrize(
    "why", [Unavailable("away", ErrorCode.STORAGE_AWAY), Unavailable("full", ErrorCode.STORAGE_FULL), None]
)
async def test_what_cannot_be_accepted_now_waits_and_nothing_more_is_read(
    bench: Bench, why: Unavailable | None
) -> None:
    """Back-pressure: the stream keeps the rest; once there is room, all of it comes in, once."""
    bench.work.away, bench.full = why, why is None
    await bench.source.write(*[body(n) for n in range(10 * BATCH)])
    async with bench.door() as door:
        async with asyncio.timeout(60):
            await bench.noted.saw(Event.SOURCE_WAITING)
            while bench.noted.counts[Metric.SOURCE_READ, "orders"] < BATCHES_AT_ONCE:  # noqa: ASYNC110 - no hook
                await asyncio.sleep(0.01)
        read = bench.noted.counts[Metric.SOURCE_READ, "orders"]
        assert read <= BATCHES_AT_ONCE * BATCH
        assert await bench.source.left() == 10 * BATCH
        assert str(door.fault) == ("the normal backlog is full" if why is None else str(why))
        assert bench.noted.events.count(Event.SOURCE_WAITING) == 1
        bench.work.away, bench.full = None, False
        await bench.all_done()
        assert door.fault is None
    assert Counter(bench.work.accepted) == {f"user-{n}": 1 for n in range(10 * BATCH)}
    assert bench.noted.events.count(Event.SOURCE_RESUMED) == 1


async def test_a_message_may_name_a_device_by_its_token(bench: Bench) -> None:
    """It is kept before the notification is, and read again it is the same device."""
    said = {"device": {"platform": "android", "token": "t-1"}, "title": "Hi"}
    payload = json.dumps(said).encode()
    await bench.source.write(payload, payload)
    async with bench.door():
        await bench.all_done()
    (kept,) = await bench.devices.with_tokens(APP, ["t-1"])
    assert kept is not None
    assert bench.work.accepted == [kept.user_id, kept.user_id]


async def test_what_waits_when_the_process_stops_is_for_the_others_at_once(bench: Bench) -> None:
    bench.work.away = Unavailable("away", ErrorCode.STORAGE_AWAY)
    await bench.source.write(*[body(n) for n in range(BATCH)])
    async with bench.door():
        async with asyncio.timeout(60):
            await bench.noted.saw(Event.SOURCE_WAITING)
    bench.work.away = None
    async with bench.door():
        await bench.all_done()
    assert Counter(bench.work.accepted) == {f"user-{n}": 1 for n in range(BATCH)}


async def test_a_message_whose_key_another_request_holds_is_asked_again(bench: Bench) -> None:
    bench.work.held = 3
    await bench.source.write(body(1))
    async with bench.door():
        await bench.all_done()
    assert bench.work.accepted == ["user-1"]
    assert bench.work.calls == 4


async def test_what_nobody_thought_of_is_one_messages_alone(bench: Bench) -> None:
    """It is put aside as ``internal``, and the others of its batch are accepted."""
    bench.work.stumbles_over = "user-2"
    await bench.source.write(*[body(n) for n in range(BATCH)])
    async with bench.door():
        await bench.all_done()
    assert sorted(bench.work.accepted) == ["user-0", "user-1", "user-3", "user-4"]
    assert await bench.source.dead() == [("internal", body(2))]
    assert Event.REQUEST_FAILED in bench.noted.events


async def test_what_is_tried_again_counts_once(bench: Bench) -> None:
    """Its caller has room for one batch and no more, and the store is away, then busy, then stumbles."""
    limits = EntrypointLimits(
        Bounds(caller=FixedWindow(BATCH, HOUR_MS)), MemoryLimiter(bench.clock), bench.clock, bench.noted
    )
    bench.work.away = Unavailable("away", ErrorCode.STORAGE_AWAY)
    bench.work.held, bench.work.stumbles_over = 2, "user-2"
    await bench.source.write(*[body(n) for n in range(BATCH)])
    async with bench.door(limits=limits):
        async with asyncio.timeout(60):
            await bench.noted.saw(Event.SOURCE_WAITING)
        bench.work.away = None
        await bench.all_done()
    assert sorted(bench.work.accepted) == ["user-0", "user-1", "user-3", "user-4"]


async def test_what_was_read_again_is_known_by_its_place_or_its_own_key(bench: Bench) -> None:
    await bench.source.write(body(1))
    await bench.source.write(body(2), body(2), key=b"mine")
    async with bench.door():
        await bench.all_done()
    await bench.source.wire.execute([("XGROUP", "SETID", bench.source.stream, "waypost", "0")])
    async with bench.door():
        await bench.all_done()
    assert sorted(bench.work.accepted) == ["user-1", "user-2"]
    assert bench.taken() == {"accepted": 2, "deduplicated": 4}


async def test_equal_content_is_sent_twice_unless_asked(bench: Bench) -> None:
    once: Any = {"dedup_window": 60}
    await bench.source.write(body(1), body(1), body(2, once), body(2, once))
    async with bench.door():
        await bench.all_done()
    assert sorted(bench.work.accepted) == ["user-1", "user-1", "user-2"]


async def test_each_message_is_accepted_in_its_own_trace_which_is_no_data_of_a_job(bench: Bench) -> None:
    bench.tracing = recorder = Recorder(unsampled="untraced")
    job = (b"userId", b"user-1", b"title", b"Hi", b"order", b"7")
    for place, said in ((b"one", job), (b"two", (b"payload", body(2))), (b"untraced", job)):
        await bench.source.wire.execute([("XADD", bench.source.stream, "*", *said, b"traceparent", place)])
    await bench.source.write(body(3))
    async with bench.door():
        await bench.all_done()
    accepts = {each.after: each.trace for each in recorder.of(Step.ACCEPT)}
    assert set(accepts) == {"one", "two", None}
    kept = [row.notification for row in bench.store.rows.values()]
    traces = Counter((each.user_id, each.content.trace) for each in kept)
    assert traces == {
        ("user-1", accepts["one"]): 1,
        ("user-2", accepts["two"]): 1,
        ("user-1", None): 1,
        ("user-3", accepts[None]): 1,
    }
    assert {str(each.content.data) for each in kept if each.user_id == "user-1"} == {"{'order': '7'}"}


async def test_a_key_used_for_something_else_is_refused_for_good(bench: Bench) -> None:
    await bench.source.write(body(1), body(2), key=b"mine")
    async with bench.door():
        await bench.all_done()
    assert bench.work.accepted == ["user-1"]
    assert await bench.source.dead() == [("idempotency_conflict", body(2))]
    assert bench.taken() == {"accepted": 1, "refused": 1}


async def test_a_server_that_is_away_is_waited_for(bench: Bench) -> None:
    """Also where it says that what is read is no stream."""
    await bench.source.wire.execute([("SET", bench.source.stream, "text")])
    async with bench.door() as door:
        async with asyncio.timeout(60):
            await bench.noted.saw(Event.SOURCE_AWAY)
        assert door.fault == "Redis answers WRONGTYPE"
        await bench.source.wire.execute([("DEL", bench.source.stream)])
        await bench.source.write(body(1))
        async with asyncio.timeout(60):
            await bench.noted.saw(Event.SOURCE_BACK)
        await bench.all_done()
    assert bench.work.accepted == ["user-1"]


async def test_a_source_that_nobody_expects_to_fail_is_tried_again(bench: Bench) -> None:
    """Whatever it is, reading goes on after it, and the log says where it was, not what was read."""
    reader = bench.source.reader()
    real, failures = reader.read, [KeyError("secret")]

    async def read(n: int) -> list[Foreign]:
        if failures:
            raise failures.pop()
        return await real(n)

    reader.read = read  # type: ignore[method-assign]  # nothing real fails like that
    await bench.source.write(body(1))
    async with bench.door(reader) as door:
        async with asyncio.timeout(60):
            await bench.noted.saw(Event.SOURCE_AWAY)
        assert (door.fault or "").startswith("KeyError at test_stream_door.py:")
        await bench.all_done()
    assert bench.work.accepted == ["user-1"]
