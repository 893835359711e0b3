"""A consumer: a process of the drop-in, whose queue others fill."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.runtime.bench import APNS, LaneBench, until
from waypost.domain.breaker import BreakerState
from waypost.domain.channel import Channel
from waypost.domain.notification import Lane
from waypost.domain.outcome import Taken
from waypost.runtime.consumer import LOOK_S, Consumer


@pytest.mark.asyncio
async def test_time_in_which_the_process_stood_still_makes_no_answer_late(tmp_path: Path) -> None:
    """It was stopped for a minute, with a message at the provider: the answer is not read yet, and no breaker opens."""
    bench = LaneBench(tmp_path / "worker_slots")
    bench.apns.answer = lambda delivery: None
    context = bench.context()
    stop = asyncio.Event()
    looks: list[int] = []
    consumer = Consumer(context, Lane.NORMAL, [("looks", LOOK_S, lambda: looks.append(1))], lambda: False)

    async def silence() -> None:
        bench.apns.finish(Taken("id"))

    running = asyncio.create_task(consumer.run(stop, silence, 1.0))
    await bench.register("ann", Channel("apns"))
    await bench.accept("ann")
    consumer.wake()
    await until(lambda: len(bench.apns.sent) == 1)
    bench.clock.advance(60_000)
    so_far = len(looks)
    await until(lambda: len(looks) >= so_far + 2)
    assert context.gates.of(Lane.NORMAL)[APNS].circuit.state is BreakerState.CLOSED
    stop.set()
    await running
