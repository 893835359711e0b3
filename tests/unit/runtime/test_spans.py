"""What lanes tell of notifications whose acceptance is traced."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.traced import Recorder
from tests.unit.runtime.bench import HELLO, until
from tests.unit.runtime.timed import AWAY, TimedBench
from waypost.domain.channel import Channel
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS
from waypost.runtime.routing import RouteLoop
from waypost.telemetry.tracing import Step

pytestmark = pytest.mark.asyncio

ANN, BOB = replace(HELLO, trace="accepted ann"), replace(HELLO, trace="accepted bob")


@pytest.fixture
def bench(tmp_path: Path) -> TimedBench:
    """A lane on an empty store, whose spans are kept."""
    made = TimedBench(tmp_path / "worker_slots")
    made.tracing = Recorder()
    return made


async def test_a_batch_links_to_each_acceptance_and_its_retry_is_in_the_same_trace(bench: TimedBench) -> None:
    bench.answers(AWAY)
    for user in ("ann", "bob", "cid"):
        await bench.register(user, Channel("apns"))
    await bench.accept("ann", content=ANN)
    await bench.accept("bob", content=BOB)
    await bench.accept("cid")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 2)
    assert isinstance(bench.tracing, Recorder)
    first, again = bench.tracing.of(Step.SEND)
    assert first.links == ["accepted ann", "accepted bob"]
    assert (first.said["count"], first.said["traced"], first.said["taken"]) == (3, 2, 1)
    assert again.links == ["accepted ann"]
    routes = bench.tracing.of(Step.ROUTE)
    assert [each.after for each in routes] == ["accepted ann", "accepted bob", "accepted ann"]
    delivers = bench.tracing.of(Step.DELIVER)
    assert [each.after for each in delivers] == [each.trace for each in routes]
    assert [each.links for each in delivers] == [[first.trace], [first.trace], [again.trace]]
    ends = [(each.said["attempt"], each.said["outcome"], each.failure) for each in delivers]
    assert ends == [(1, "unreachable", AWAY.code), (1, "taken", None), (2, "taken", None)]


async def test_routing_apart_is_a_span_of_its_own_and_what_is_not_sent_ends_there(bench: TimedBench) -> None:
    await bench.register("ann", Channel("apns"))
    await bench.accept("ann", content=ANN)
    await bench.accept("nobody", content=BOB)
    loop = RouteLoop(Lane.NORMAL, bench.context(), bench.work)
    running = asyncio.create_task(loop.run())
    assert isinstance(bench.tracing, Recorder)
    recorder = bench.tracing
    await until(lambda: len(recorder.spans) >= 2 and all(each.is_over for each in recorder.spans))
    loop.stop()
    await running
    of_ann, of_nobody = recorder.of(Step.ROUTE)[:2]
    assert (of_ann.said["deliveries"], of_nobody.said["deliveries"]) == (1, 0)
    assert of_nobody.said["status"] == "no_targets"
    assert recorder.of(Step.DELIVER) == []


async def test_what_its_parent_does_not_sample_is_told_to_nobody(bench: TimedBench) -> None:
    bench.tracing = Recorder(unsampled="accepted ann")
    await bench.register("ann", Channel("apns"))
    await bench.accept("ann", content=ANN)
    await bench.accept("ann", content=replace(ANN, trace=None), scheduled_at=None, ttl_ms=HOUR_MS)
    async with bench.running() as loop:
        await bench.turn(loop)
    assert bench.tracing.spans == []
    assert len(bench.apns.sent) == 2
