"""A forecast: what a campaign would do, added up from what routing decides for a sample of its users. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.campaign import Campaign
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, Target
from waypost.domain.device import Device
from waypost.domain.settlement import Change, Parked, Suppressed
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, SECOND_MS, Instant, later
from waypost.domain.variants import place_of

SAMPLE: Final = 2_000
"""Users below which nobody is left out of a forecast, and the fewest in the sample of a larger one."""
DEAD_AFTER_MS: Final = 270 * DAY_MS
"""Milliseconds without a sign after which FCM drops a token: "Manage FCM registration tokens", on stale tokens."""
_SALT: Final = "forecast"


class Sample(Struct):
    """A sample of users as they are walked: all of them, until they are too many; then each with the same chance."""

    share: float = 1.0
    recipients: int = 0
    left_out: int = 0
    chosen: list[str] = []

    def add(self, users: Iterable[tuple[str, bool]]) -> None:
        """Take in more users, each with whether they opted out."""
        for user_id, is_out in users:
            if is_out:
                self.left_out += 1
                continue
            self.recipients += 1
            if place_of(_SALT, user_id) < self.share:
                self.chosen.append(user_id)
        while len(self.chosen) > 2 * SAMPLE:
            self.share /= 2
            self.chosen = [user_id for user_id in self.chosen if place_of(_SALT, user_id) < self.share]


class Planned(Struct, frozen=True):
    """The decision of routing for one user, as it would be when their turn comes."""

    deliveries: Sequence[Delivery]
    changes: Sequence[Change]
    targets: Sequence[Target]
    verdict: NotificationStatus | None
    variant: str | None
    scheduled_at: Instant | None = None
    """The local time that it waits for, whatever the pace."""


class ForecastChannel(Struct, frozen=True):
    """The targets of one channel."""

    channel: str
    send: int = 0
    """Those sent to at once."""
    fallback: int = 0
    """Those that wait for another channel to fail."""
    held_back: int = 0
    suppressed: dict[str, int] = {}
    """Those not sent to, by reason."""


class ForecastQuota(Struct, frozen=True):
    """The share of one credential's limit that the campaign takes."""

    credential: str
    deliveries: int
    per_second: float | None
    """The app's limit; None where it sets none."""
    seconds: int | None
    """How long the deliveries take at the limit."""


class Forecast(Struct, frozen=True):
    """A forecast of a campaign that begins at *begins_at*; counts are estimates unless it is *exact*."""

    begins_at: Instant
    ends_at: Instant | None
    """When the last one is sent to; None where nothing limits the speed."""
    recipients: int
    left_out: int
    sampled: int
    exact: bool
    users: dict[str, int]
    """Users by what becomes of them: ``sent``, ``held_back``, ``suppressed``, ``no_targets``, ``expired``."""
    channels: tuple[ForecastChannel, ...]
    held_back: dict[str, int]
    """Targets by the rule that holds them back."""
    held_until: Instant | None
    variants: dict[str, int]
    dead_tokens: int
    """Deliveries to devices without a sign for so long that their tokens are likely to be dead."""
    sms_segments: int
    sms_price: float
    quota: tuple[ForecastQuota, ...]


def turn_of(campaign: Campaign, recipients: int, user_id: str, n: int, of: int, begins_at: Instant) -> Instant:
    """Estimate when the *n*-th of *of* sampled users has their turn."""
    ramp, rate = campaign.asked.ramp, campaign.asked.rate
    step, part = next((at for at in enumerate(campaign.parts) if at[1].has(user_id)), (0, campaign.parts[0]))
    waits_ms = 0 if ramp is None else step * ramp.hold * SECOND_MS
    if rate is None or not of:
        return later(begins_at, waits_ms)
    place = recipients * (part.after + (part.until - part.after) * n / of) / 100
    return later(begins_at, waits_ms + int(place * SECOND_MS / rate))


class Tally:
    """The sums of a forecast in the making."""

    def __init__(self, segments_of: Callable[[Delivery], int]) -> None:
        """Create it; *segments_of* counts the SMS segments of a delivery, 0 for one of another channel."""
        self._segments_of = segments_of
        self._users: Counter[str] = Counter()
        self._variants: Counter[str] = Counter()
        self._by_channel: Counter[tuple[str, str]] = Counter()
        self._suppressed: Counter[tuple[str, str]] = Counter()
        self._held: Counter[str] = Counter()
        self._of_credential: Counter[CredentialId] = Counter()
        self._held_until: Instant | None = None
        self._last: Instant | None = None
        """The last local time that somebody waits for."""
        self._dead = self._segments = 0

    def add(self, planned: Planned, now: Instant) -> None:
        """Add what one user would get at *now*."""
        if planned.scheduled_at is not None:
            self._last = max(self._last or now, now)
        if planned.variant is not None:
            self._variants[planned.variant] += 1
        decided = {each.n: each.settlement for each in planned.changes}
        sent = {each.n for each in planned.deliveries}
        for target in planned.targets:
            self._add_target(target, decided.get(target.n), is_sent=target.n in sent)
        for each in planned.deliveries:
            self._of_credential[each.credential] += 1
            self._segments += self._segments_of(each)
            self._dead += isinstance(each.address, Device) and now - each.address.last_seen_at > DEAD_AFTER_MS
        self._users[_fate(planned)] += 1

    def _add_target(self, target: Target, decided: object, *, is_sent: bool) -> None:
        channel = target.channel or "none"
        match decided:
            case Suppressed(reason):
                self._suppressed[channel, reason] += 1
            case Parked(condition, until):
                self._by_channel[channel, "held_back"] += 1
                self._held[condition.removeprefix("rule:")] += 1
                self._held_until = max(self._held_until or until, until)
            case _:
                self._by_channel[channel, "send" if is_sent else "fallback"] += 1

    def forecast(
        self, campaign: Campaign, sample: Sample, begins_at: Instant, limits: dict[str, float], price: float
    ) -> Forecast:
        """Put the sums together, for all users; *limits* are deliveries a second by a credential's slot."""
        factor = sample.recipients / max(1, len(sample.chosen))

        def all_of(n: int) -> int:
            return round(n * factor)

        quota = tuple(_quota(each, all_of(n), limits) for each, n in sorted(self._of_credential.items(), key=str))
        segments = all_of(self._segments)
        return Forecast(
            begins_at=begins_at,
            ends_at=_end(campaign, sample.recipients, begins_at, quota, (self._held_until, self._last)),
            recipients=sample.recipients,
            left_out=sample.left_out,
            sampled=len(sample.chosen),
            exact=len(sample.chosen) == sample.recipients,
            users={name: all_of(n) for name, n in self._users.items()},
            channels=tuple(self._channel(name, all_of) for name in self._channels()),
            held_back={name: all_of(n) for name, n in self._held.items()},
            held_until=self._held_until,
            variants={name: all_of(n) for name, n in self._variants.items()},
            dead_tokens=all_of(self._dead),
            sms_segments=segments,
            sms_price=round(segments * price, 4),
            quota=quota,
        )

    def _channels(self) -> Sequence[str]:
        return sorted({name for name, _ in self._by_channel} | {name for name, _ in self._suppressed})

    def _channel(self, name: str, all_of: Callable[[int], int]) -> ForecastChannel:
        send, fallback, held_back = (all_of(self._by_channel[name, what]) for what in ("send", "fallback", "held_back"))
        suppressed = {reason: all_of(n) for (channel, reason), n in self._suppressed.items() if channel == name}
        return ForecastChannel(name, send, fallback, held_back, suppressed)


def _fate(planned: Planned) -> str:
    if planned.verdict is not None:
        return planned.verdict.value
    if planned.deliveries:
        return "sent"
    return "held_back" if any(isinstance(each.settlement, Parked) for each in planned.changes) else "suppressed"


def _quota(credential: CredentialId, deliveries: int, limits: dict[str, float]) -> ForecastQuota:
    per_second = limits.get(credential.slot)
    seconds = None if per_second is None else math.ceil(deliveries / per_second)
    return ForecastQuota(credential.slot, deliveries, per_second, seconds)


def _end(
    campaign: Campaign,
    recipients: int,
    begins_at: Instant,
    quota: Sequence[ForecastQuota],
    waits: Sequence[Instant | None],
) -> Instant | None:
    """Estimate the end: by the pace asked for, the slowest limit, and who waits for a time, whichever is last."""
    rate, ramp = campaign.asked.rate, campaign.asked.ramp
    spans = [each.seconds for each in quota if each.seconds is not None]
    if rate is not None:
        spans.append(math.ceil(recipients / rate))
    known = [each for each in waits if each is not None]
    if not spans and not known:
        return None
    holds = 0 if ramp is None else ramp.hold * (len(campaign.parts) - 1)
    return max([later(begins_at, (max(spans, default=0) + holds) * SECOND_MS), *known])
