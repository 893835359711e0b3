"""A lane whose time is moved by the test, under a policy that the test names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.unit.runtime.bench import APP, LaneBench
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import APNS, Channel
from waypost.domain.delivery import Receipt
from waypost.domain.ids import NotificationId
from waypost.domain.outcome import Outcome, Taken, Throttled, Unreachable
from waypost.domain.retry import POLICIES, RetryRules
from waypost.domain.time import SECOND_MS
from waypost.ports.views import DeadQuery
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.lane import LaneLoop

TAKEN = Taken("p1")
AWAY = Unreachable("ServiceUnavailable", "Apple is not available")
LATER = Throttled("TooManyRequests", 7 * SECOND_MS)


class TimedBench(LaneBench):
    """A lane whose time is moved by the test; notes when each attempt was made."""

    def __init__(self, board_path: Path) -> None:
        super().__init__(board_path)
        self.rules = BreakerRules(failures_to_open=1_000, failing_for_s=math.inf)
        self.retry = RetryRules()
        self.began = self.clock.now()
        self.attempts_s: list[int] = []
        for sender in (self.apns, self.fcm):
            sender.on_send = lambda delivery: self.attempts_s.append((self.clock.now() - self.began) // SECOND_MS)

    def context(self) -> DeliveryContext:
        """With the policies of the test."""
        return msgspec.structs.replace(super().context(), rules={APP: self.retry})

    def under(self, policy: str) -> None:
        """Let the app use the named policy for everything."""
        self.retry = RetryRules(POLICIES[policy])

    def answers(self, *outcomes: Outcome) -> None:
        """What APNs answers, one after the other; after the last, accepted."""
        script: Iterator[Outcome] = iter(outcomes)
        self.apns.answer = lambda delivery: next(script, TAKEN)

    async def turn(self, loop: LaneLoop) -> None:
        """Release what is due now and let the lane do it."""
        self.made.gates.tick(self.clock.monotonic())
        await self.work.promote_due(self.clock.now(), 100, self.made.gates.lifted())
        await self.made.gates.release_rated(self.work, self.clock.now())
        await self.settled(loop)

    async def pass_time(self, loop: LaneLoop, span_s: int, step_s: int = 1) -> None:
        """Let time go by in steps, working at each."""
        for _ in range(0, span_s, step_s):
            self.clock.advance(step_s * SECOND_MS)
            await self.turn(loop)

    async def receipt(self, told: NotificationId, channel: Channel = APNS) -> Receipt:
        """The receipt of one channel."""
        return next(each for each in (await self.detail(told)).receipts if each.channel == channel)

    async def letters(self) -> list[str | None]:
        """The codes of the dead letters."""
        return [letter.receipt.code for letter in await self.views.dead(DeadQuery(APP))]
