"""A user's profile: the language, the time zone, and what the app says of the user. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from waypost.domain.errors import Fault

ATTRIBUTES_LIMIT: Final = 100
"""The most attributes of a user."""

Attribute = str | int | float | bool | tuple[str, ...]
"""The value of an attribute: a text, a number, yes or no, or a set of texts."""


class Profile(Struct, frozen=True, kw_only=True):
    """The profile of a user; an unknown user has an empty one."""

    locale: str | None = None
    """The language, as BCP 47 writes it."""
    time_zone: str | None = None
    """The name of the time zone in the IANA database."""
    attributes: Mapping[str, Attribute] = {}


class ProfileChange(Struct, frozen=True, kw_only=True):
    """A change of some fields of a profile; what is not *named* stays as it is."""

    named: frozenset[str]
    """Which of ``locale`` and ``time_zone`` are set, to None too."""
    locale: str | None = None
    time_zone: str | None = None
    attributes: Mapping[str, Attribute | None] = {}
    """The attributes that are set; None removes one."""


NOBODY: Final = Profile()


def changed(profile: Profile, change: ProfileChange) -> Profile:
    """Return *profile* after *change*; it may have more attributes than ATTRIBUTES_LIMIT then."""
    attributes = {**profile.attributes, **change.attributes}
    return Profile(
        locale=change.locale if "locale" in change.named else profile.locale,
        time_zone=change.time_zone if "time_zone" in change.named else profile.time_zone,
        attributes={name: value for name, value in attributes.items() if value is not None},
    )


def zone_faults(time_zone: str | None) -> list[Fault]:
    """Say what is wrong with the name of a time zone; empty where it is one."""
    if time_zone is None or time_zone in _zones():
        return []
    return [Fault("time_zone", "no time zone of the IANA database, such as Europe/Zurich")]


def zone_of(*names: str | None) -> ZoneInfo:
    """Return the first time zone in *names* that this machine knows; UTC where it knows none of them."""
    return ZoneInfo(next((name for name in names if name in _zones()), "UTC"))


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
