"""Segments in memory: a filter read in plain Python, to which the stores' SQL is held."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from waypost.domain.device import Device, TokenUse
from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import NOBODY, Profile
from waypost.domain.segment import AttributeTest, DeviceTest, EventTest, Filter
from waypost.domain.time import DAY_MS, Instant
from waypost.ports.segments import Counted, Segment


@dataclass
class Known:
    """All that a filter may ask of a user."""

    profile: Profile = NOBODY
    devices: Sequence[Device] = ()
    topics: frozenset[str] = frozenset()
    events: Mapping[tuple[str, int], tuple[int, Instant]] = field(default_factory=dict)
    """How often, and when last, by name and day."""


def chooses(chosen: Filter, user: Known, now: Instant) -> bool:
    """Tell whether *user* is one of *chosen*."""
    if chosen.all_ is not None:
        return all(chooses(part, user, now) for part in chosen.all_)
    if chosen.any_ is not None:
        return any(chooses(part, user, now) for part in chosen.any_)
    if chosen.not_ is not None:
        return not chooses(chosen.not_, user, now)
    if chosen.attribute is not None:
        return _has(chosen.attribute, user.profile)
    if chosen.locale is not None:
        return _is_in(user.profile.locale, chosen.locale)
    if chosen.time_zone is not None:
        return user.profile.time_zone in chosen.time_zone
    if chosen.device is not None:
        return any(_holds(chosen.device, device, now) for device in user.devices)
    if chosen.topic is not None:
        return chosen.topic in user.topics
    assert chosen.event is not None
    return _had(chosen.event, user, now)


def _has(test: AttributeTest, profile: Profile) -> bool:
    value = profile.attributes.get(test.name)
    if value is None:
        return False
    wanted = test.in_ if test.is_ is None else (test.is_,)
    if wanted is not None:
        texts = value if isinstance(value, tuple) else (value,)
        if not any(isinstance(one, bool) == isinstance(each, bool) and one == each for one in wanted for each in texts):
            return False
    bounds = (
        (test.above, operator.gt),
        (test.at_least, operator.ge),
        (test.below, operator.lt),
        (test.at_most, operator.le),
    )
    return all(bound is None or (_kind(bound) == _kind(value) and holds(value, bound)) for bound, holds in bounds)


def _kind(value: Any) -> str:
    if isinstance(value, bool | tuple):
        return "other"
    return "text" if isinstance(value, str) else "number"


def _is_in(locale: str | None, wanted: Sequence[str]) -> bool:
    return locale is not None and any(locale == each or locale.startswith((f"{each}-", f"{each}_")) for each in wanted)


def _holds(test: DeviceTest, device: Device, now: Instant) -> bool:
    return (
        device.active
        and device.token_use is TokenUse.ALERT
        and (not test.platforms or device.platform in test.platforms)
        and (not test.app_versions or device.app_version in test.app_versions)
        and (not test.locales or _is_in(device.locale, test.locales))
        and (test.seen_within_days is None or device.last_seen_at >= now - test.seen_within_days * DAY_MS)
    )


def _had(test: EventTest, user: Known, now: Instant) -> bool:
    since = None if test.within_days is None else now - test.within_days * DAY_MS
    counted = [
        count
        for (name, day), (count, last_at) in user.events.items()
        if name == test.name and (since is None or (last_at >= since and since // DAY_MS <= day <= now // DAY_MS + 1))
    ]
    return sum(counted) >= test.at_least


class MemorySegments:
    """See ports.segments.Segments; it knows no users."""

    def __init__(self) -> None:
        self._kept: dict[tuple[AppId, str], Segment] = {}
        self.users: dict[AppId, dict[UserId, Known]] = {}

    async def put(self, app: AppId, name: str, filter_: Filter, at: Instant) -> bool:
        """See Segments."""
        is_new = (app, name) not in self._kept
        self._kept[app, name] = Segment(name, filter_, at)
        return is_new

    async def find(self, app: AppId, name: str) -> Segment | None:
        """See Segments."""
        return self._kept.get((app, name))

    async def page(self, app: AppId, after: str, n: int) -> list[Segment]:
        """See Segments."""
        names = sorted(name for of, name in self._kept if of == app and name > after)
        return [self._kept[app, name] for name in names[:n]]

    async def remove(self, app: AppId, name: str) -> bool:
        """See Segments."""
        return self._kept.pop((app, name), None) is not None

    async def count(self, app: AppId, filter_: Filter, now: Instant, examples: int) -> Counted:
        """See Segments."""
        users = self.users.get(app, {})
        found = sorted(user for user, known in users.items() if chooses(filter_, known, now))
        return Counted(len(found), len(users), tuple(found[:examples]))

    async def first(self, app: AppId, filter_: Filter, now: Instant, n: int) -> Sequence[UserId]:
        """See Segments."""
        return (await self.count(app, filter_, now, n)).examples
