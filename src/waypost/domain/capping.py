"""Caps: how many notifications a user has had in a time, and when there is room for another. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.preferences import Cap, Preferences, PreferenceSettings, TypeSettings
from waypost.domain.quiet_hours import instant_of
from waypost.domain.time import DAY_MS, Instant, later, to_datetime

EVERYTHING: Final = ""
"""The scope of a cap over all types."""


class Capped(Struct, frozen=True):
    """The caps that hold for one notification, by what each counts."""

    wholes: Mapping[str, Cap]
    """The caps of the whole notification, by their scope."""
    channels: Mapping[str, Cap]
    """The caps of one channel each, by its name."""
    kind: str
    zone: ZoneInfo

    def scope_of(self, channel: str) -> str:
        """Return the scope of the cap of *channel*."""
        return f"{self.kind}\n{channel}"

    def may_degrade(self, channel: str) -> bool:
        """Tell whether what is sent by *channel* may be over a cap that degrades."""
        caps = [*self.wholes.values(), *([self.channels[channel]] if channel in self.channels else [])]
        return any(each.over == "degrade" for each in caps)


class Claim(Struct, frozen=True):
    """A wish to send a notification by some channels, if no cap is reached."""

    app: AppId
    user_id: UserId
    notification_id: NotificationId
    capped: Capped
    channels: frozenset[str]
    at: Instant

    @property
    def is_asked(self) -> bool:
        """Whether any cap counts it."""
        return bool(self.capped.wholes) or any(True for _ in self._capped_channels())

    @property
    def days(self) -> Sequence[int]:
        """The days (UTC, since 1970) in which what its caps count may lie."""
        asked = [*self.capped.wholes.values(), *(self.capped.channels[each] for each in self._capped_channels())]
        first = min(since(each, self.capped.zone, self.at) for each in asked)
        return range(first // DAY_MS, self.at // DAY_MS + 1)

    def _capped_channels(self) -> Iterator[str]:
        return (each for each in sorted(self.channels) if each in self.capped.channels)

    def scopes(self) -> Iterator[tuple[str, str | None, Cap]]:
        """Yield each scope with its cap, and the channel where it is of one."""
        for scope, cap in self.capped.wholes.items():
            yield scope, None, cap
        for channel in self._capped_channels():
            yield self.capped.scope_of(channel), channel, self.capped.channels[channel]


class Full(Struct, frozen=True):
    """A cap that is reached."""

    until: Instant | None
    """When there is room; None where what is over it is not sent."""
    degrades: bool = False
    """Whether what is over it is found in the feed instead."""


class Verdicts(Struct, frozen=True):
    """The verdicts on one claim."""

    whole: Full | None = None
    """The cap of the whole notification that is reached, if one is."""
    channels: Mapping[str, Full] = {}
    """The channels whose cap is reached."""

    def of(self, channel: str) -> Full | None:
        """Return what holds back *channel*."""
        return self.whole or self.channels.get(channel)


NO_CAP: Final = Verdicts()
"""The verdicts where no cap is reached."""
Counted = Mapping[str, Mapping[NotificationId, Instant]]
"""The notifications that were counted, by scope, each with the time of its last attempt."""


def caps_of(app: PreferenceSettings, settings: TypeSettings, kind: str | None, said: Preferences) -> Capped | None:
    """Return the caps that hold for a type; None where there are none. The zone is UTC until it is known."""
    if app.cap is None and settings.cap is None and said.frequency_limit is None and not settings.channel_caps:
        return None
    wholes: dict[str, Cap] = {}
    if not settings.critical:
        cap = app.cap
        if said.frequency_limit is not None:
            cap = Cap(limit=said.frequency_limit, over="hold" if cap is None else cap.over)
        if cap is not None:
            wholes[EVERYTHING] = cap
    if kind is not None and settings.cap is not None:
        wholes[kind] = settings.cap
    channels = {str(name): cap for name, cap in settings.channel_caps.items()} if kind is not None else {}
    return Capped(wholes, channels, kind or "", _UTC) if wholes or channels else None


_UTC: Final = ZoneInfo("UTC")


def judge(claim: Claim, counted: Counted) -> Verdicts:
    """Say which caps leave no room for *claim*; the notification itself is not in its own way."""
    whole: Full | None = None
    channels: dict[str, Full] = {}
    for scope, channel, cap in claim.scopes():
        full = _full(claim, cap, counted.get(scope, {}))
        if full is not None and channel is not None:
            channels[channel] = full
        elif full is not None:
            whole = full if whole is None else _stricter(whole, full)
    return Verdicts(whole, channels)


def _stricter(one: Full, other: Full) -> Full:
    """Return what counts of two: not to be sent, else to be in the feed alone, else the longer wait."""
    return max(one, other, key=lambda it: (it.until is None and not it.degrades, it.degrades, it.until or 0))


def _full(claim: Claim, cap: Cap, counted: Mapping[NotificationId, Instant]) -> Full | None:
    after = since(cap, claim.capped.zone, claim.at)
    times = sorted(at for one, at in counted.items() if at > after and one != claim.notification_id)
    if len(times) < cap.limit:
        return None
    if cap.over != "hold":
        return Full(None, degrades=cap.over == "degrade")
    if cap.rolls_ms is None:
        return Full(_midnight(claim.capped.zone, claim.at, days=1))
    return Full(later(times[len(times) - cap.limit], cap.rolls_ms))


def since(cap: Cap, zone: ZoneInfo, now: Instant) -> Instant:
    """Return the time after which *cap* counts: of a day, the moment before it began in *zone*."""
    return later(_midnight(zone, now), -1) if cap.rolls_ms is None else later(now, -cap.rolls_ms)


def _midnight(zone: ZoneInfo, now: Instant, *, days: int = 0) -> Instant:
    """Return when the day in *zone* began, or the one *days* later does."""
    return instant_of(to_datetime(now).astimezone(zone).date() + timedelta(days=days), 0, zone)
