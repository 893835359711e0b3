"""A consumer: one process that works off a queue that others fill, from start to drain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from waypost.domain.notification import Lane
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.ending import FAILED_DRAIN_S, ended_by, landed, senders_stopped, told_to_stop
from waypost.runtime.lane import LaneLoop
from waypost.runtime.pulse import Pulse
from waypost.runtime.ticker import Ticker, every
from waypost.telemetry import Event

LOOK_S = 0.1


class Consumer:
    """A consumer that leases from one lane; the queue divides the work among consumers."""

    def __init__(
        self, context: DeliveryContext, lane: Lane, tickers: Sequence[Ticker], is_due: Callable[[], bool]
    ) -> None:
        """Create the consumer; *is_due* tells whether something held may wait for its time: then it looks again."""
        self._context = context
        self._loop = LaneLoop(lane, context)
        self._pulse = Pulse(context.gates, context.clock, LOOK_S)
        self._tickers = [*tickers, ("look", LOOK_S, self._look)]
        self._is_due = is_due

    def wake(self) -> None:
        """Wake the lane: there is something to lease."""
        self._loop.wake()

    async def run(self, stop: asyncio.Event, silence: Callable[[], Coroutine[Any, Any, None]], drain_s: float) -> None:
        """Work until *stop* is set, then call *silence* and finish what is in hand; the senders are started already."""
        context, tasks, patience_s = self._context, list[asyncio.Task[None]](), FAILED_DRAIN_S
        leasing: list[asyncio.Task[None]] = []
        try:
            context.settler.on_written = lambda _: self.wake()
            tasks = [asyncio.create_task(context.settler.run())]
            tasks += [asyncio.create_task(every(s, act, context.telemetry, name)) for name, s, act in self._tickers]
            leasing = [asyncio.create_task(self._loop.run())]
            context.telemetry.event(Event.PROCESS_READY)
            await told_to_stop(stop, [tasks[0], *leasing], context.telemetry)
            patience_s = drain_s
        finally:
            context.telemetry.event(Event.PROCESS_DRAINING)
            self._loop.stop()
            await ended_by(patience_s, [silence(), landed(context, [self._loop], leasing)], context.telemetry)
            await senders_stopped(context)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _look(self) -> None:
        """Let an open breaker have its probe, and what rests its turn."""
        self._pulse.beat()
        if self._is_due():
            self.wake()
        self._loop.look_again()
