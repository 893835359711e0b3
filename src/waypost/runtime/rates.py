"""Rates: how much each provider, and each device, gets in a time, and how what has to wait for that comes back."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.limits import Granted, Rate, TokenBucket, Wait
from waypost.domain.notification import Lane
from waypost.domain.time import SECOND_MS
from waypost.pipeline.deliver import Pause
from waypost.ports.clock import Clock
from waypost.ports.limiter import Limiter
from waypost.telemetry import Metric, Telemetry

LANE_SHARES: Final[Mapping[Lane, float]] = {
    Lane.CRITICAL: 0.15,
    Lane.HIGH: 0.15,
    Lane.NORMAL: 0.35,
    Lane.LOW: 0.10,
    Lane.BULK: 0.15,
    Lane.SILENT: 0.10,
}
"""What part of a sender's capacity each lane may fill: fixed, so that no lane ever waits for another. Of what a limit
allows, the lanes that wait for it share in the same proportion."""

TURN: Final = 1_000
"""The most of one lane that comes back at once."""

LEAST_WAIT_MS: Final = 100
"""The least wait by time, milliseconds, so that coming back is worth it."""

SPARE_S: Final = 0.25
"""Seconds for which what was taken and not used may go to the next: half of what is kept back for delays."""

CREDENTIAL_LIMITED: Final = "rate_limited"
DEVICE_LIMITED: Final = "device_limited"

_ORDER: Final = tuple(Lane)

Key = tuple[NotificationId, int]


class RateGate:
    """The limits of one credential, as this worker sees them: others take from the same."""

    def __init__(
        self,
        credential: CredentialId,
        rate: Rate,
        limiter: Limiter,
        clock: Clock,
        telemetry: Telemetry,
        *,
        spends_retry: bool = False,
        parks: bool = True,
    ) -> None:
        """Create the gate; deliveries over the limit wait under a condition, or by time if that spends a retry."""
        self._telemetry = telemetry
        self._app = credential.app
        self.waiting = Waiting(credential, rate.bucket, clock)
        self._credential = credential
        self._rate = rate
        self._limiter = limiter
        self._clock = clock
        self._spare = 0
        self._spare_until_s = 0.0
        self._spends_retry = spends_retry
        self._parks = parks and not spends_retry

    async def over(
        self, lane: Lane, asked: Sequence[tuple[Delivery, bool]], room: int, full: str
    ) -> dict[Key, str | Pause]:
        """Return what each of *asked* that is too much has to wait for; the others are to be handed over now.

        With each comes whether it is new: that has its turn after what waits. For more than *room* there is no place:
        they wait under the condition *full*.
        """
        stands_back = self.waiting.is_known
        places = max(0, min(room, sum(not (is_new and stands_back) for _, is_new in asked)))
        granted = left = await self._granted(places) if places > 0 else 0
        behind = 0
        found: dict[Key, str | Pause] = {}
        for delivery, is_new in asked:
            key = delivery.id, delivery.n
            if left <= 0 and granted == places and not (is_new and stands_back):
                found[key] = full
            elif left <= 0 or (is_new and stands_back):
                behind += 1
                found[key] = self._limited(lane, behind)
            elif wait_ms := await self._device_wait_ms(delivery):
                found[key] = Pause(wait_ms, DEVICE_LIMITED, self._spends_retry)
            else:
                left -= 1
        if left > 0:
            self._keep(left)
        if found:
            self._count(found.values(), full)
        return found

    def _count(self, found: Collection[str | Pause], full: str) -> None:
        by_device = sum(isinstance(each, Pause) and each.code == DEVICE_LIMITED for each in found)
        by_credential = len(found) - by_device - sum(each == full for each in found)
        for limit, n in (("credential", by_credential), ("device", by_device)):
            if n:
                self._telemetry.count(Metric.LIMITED, n, limit=limit, app=self._app)

    def _limited(self, lane: Lane, place: int) -> str | Pause:
        if self._parks:
            return self.waiting.conditions[lane]
        return Pause(max(LEAST_WAIT_MS, self.waiting.comes_in_ms(place)), CREDENTIAL_LIMITED, self._spends_retry)

    async def _granted(self, n: int) -> int:
        """Take at most *n* of what the provider may get; nothing while the limiter is away."""
        bucket = self._rate.bucket
        if bucket is None:
            return n
        spare = min(n, self._spare) if self._clock.monotonic() < self._spare_until_s else 0
        self._spare -= spare
        return spare + (await self._taken(bucket, min(n - spare, bucket.size)) if n > spare else 0)

    def _keep(self, unused: int) -> None:
        """Keep for the next what devices that had enough did not use."""
        now_s = self._clock.monotonic()
        if now_s >= self._spare_until_s:
            self._spare, self._spare_until_s = 0, now_s + SPARE_S
        self._spare += unused

    async def _taken(self, bucket: TokenBucket, n: int) -> int:
        name = f"credential:{self._credential}"
        try:
            answer = await self._limiter.take(name, bucket, n)
            if isinstance(answer, Wait):
                self.waiting.comes((n - answer.left) / answer.wait_ms)
                n = answer.left
                answer = await self._limiter.take(name, bucket, n) if n else answer
        except Unavailable:
            return 0
        self.waiting.there_is(answer.left)
        return n if isinstance(answer, Granted) else 0

    async def _device_wait_ms(self, delivery: Delivery) -> int:
        """Return for how many milliseconds the delivery's device has had enough."""
        if self._rate.per_device is None:
            return 0
        name = f"device:{self._credential}:{delivery.address.token_hash.hex()}"
        try:
            answer = await self._limiter.take(name, self._rate.per_device)
        except Unavailable as away:
            return away.retry_after_s * SECOND_MS
        return answer.wait_ms if isinstance(answer, Wait) else 0


class Waiting:
    """The lanes that wait for a credential's bucket, and an estimate of when how much of them may come back.

    It is only a reckoning: what comes back asks the bucket again, and waits again where others were there before.
    """

    def __init__(self, credential: CredentialId, bucket: TokenBucket | None, clock: Clock) -> None:
        self.conditions: Mapping[Lane, str] = {lane: f"rate:{lane}/{credential}" for lane in Lane}
        self._clock = clock
        self._most = 0 if bucket is None else bucket.size
        self._per_ms = 0.0 if bucket is None else bucket.refill_per_s / SECOND_MS
        self._left = 0.0
        self._at_ms = clock.now()
        self._lanes: set[Lane] = set()
        """The lanes of which something waits."""
        self._unknown: set[Lane] = set()
        """The lanes of which something may wait."""
        self._credit = dict.fromkeys(Lane, 0.0)

    @property
    def is_known(self) -> bool:
        """Whether something waits."""
        return bool(self._lanes)

    @property
    def is_looked_for(self) -> bool:
        """Whether something waits or may wait."""
        return bool(self._lanes or self._unknown)

    def comes_in_ms(self, n: int) -> int:
        """Return in how many milliseconds there will be *n* more."""
        return math.ceil(n / self._per_ms)

    def comes(self, per_ms: float) -> None:
        """Set how much comes in a millisecond."""
        self._per_ms = per_ms

    def there_is(self, left: int) -> None:
        """Set how much is in the bucket now."""
        self._left, self._at_ms = left, self._clock.now()

    def turns(self) -> Iterator[tuple[Lane, int]]:
        """Yield how many of each waiting lane may come back: its share of what has come; one of a lane that may wait.

        Tell ``came_back`` what did before going on, where that is known.
        """
        for lane in sorted(self._unknown, key=_ORDER.index):
            yield lane, 1
        if not self._lanes:
            return
        now = self._clock.now()
        came = min(self._left + max(0, now - self._at_ms) * self._per_ms, self._most)
        self._left, self._at_ms = 0.0, now
        shares = sum(LANE_SHARES[lane] for lane in self._lanes)
        for lane in sorted(self._lanes, key=_ORDER.index):
            credit = min(self._credit[lane] + came * LANE_SHARES[lane] / shares, TURN)
            self._credit[lane] = credit - int(credit)
            if credit >= 1:
                yield lane, int(credit)

    def came_back(self, lane: Lane, n: int) -> None:
        """Note that *n* of *lane* came back; where none did, none waits."""
        self._unknown.discard(lane)
        if n:
            self._lanes.add(lane)
        else:
            self._lanes.discard(lane)

    def parked(self, condition: str) -> None:
        """Note that something was durably parked under *condition*."""
        for lane, name in self.conditions.items():
            if name == condition:
                self._lanes.add(lane)

    @property
    def held(self) -> frozenset[str]:
        """The conditions that it lifts: none where there is no limit any more."""
        return frozenset(self.conditions.values() if self._most else ())

    def found_parked(self, conditions: Collection[str]) -> None:
        """Note that something is parked under these conditions, if not of this worker's shards."""
        if self._most:
            self._unknown |= {lane for lane, name in self.conditions.items() if name in conditions} - self._lanes
