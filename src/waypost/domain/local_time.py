"""Local times: what a clock on the wall shows, and which instant that is in a zone.

The rule is that of RFC 5545 (section 3.3.5, form 3): a time that a clock change skips counts by the offset before the
change (02:30 in the night when 02:00 becomes 03:00 is 03:30), and of one that happens twice the first is meant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct

from waypost.domain.errors import Fault
from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import zone_faults, zone_of
from waypost.domain.text import FORM
from waypost.domain.time import Instant, from_datetime, to_datetime

LOCAL: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?"
LocalTime = Annotated[
    str,
    Meta(
        max_length=19,
        pattern=rf"^{LOCAL}(?!\n)$",
        examples=["2026-12-01T09:00"],
        extra={FORM: 'YYYY-MM-DDTHH:MM, such as "2026-12-01T09:00"'},
    ),
]
UTC_NAME: Final = "UTC"
WESTERNMOST: Final = "Etc/GMT+12"
"""The zone where a local time comes last."""


class ZoneSource(StrEnum):
    """The place where a zone was found."""

    USER = "user"
    APP = "app"
    NOWHERE = "nowhere"
    SCHEDULE = "schedule"


class ChosenZone(Struct, frozen=True):
    """The zone in which a local time is meant, and where it was found."""

    name: str
    source: ZoneSource
    unknown: str | None = None
    """The name on record of the user that no zone has, where there is one."""


ZoneReader = Callable[[AppId, Sequence[UserId]], Awaitable[Mapping[UserId, ChosenZone]]]
"""Finds the zone of each of these users; Unavailable where the store is away."""


def choose_zone(of_user: str | None, of_app: str | None) -> ChosenZone:
    """Choose the zone of a user: their own, else the app's, else UTC; one that is unknown counts as none."""
    if of_user is not None and not zone_faults(of_user):
        return ChosenZone(of_user, ZoneSource.USER)
    if of_app is not None and not zone_faults(of_app):
        return ChosenZone(of_app, ZoneSource.APP, of_user)
    return ChosenZone(UTC_NAME, ZoneSource.NOWHERE, of_user)


@lru_cache(maxsize=1024)
def zone_named(name: str) -> ZoneInfo:
    """Return the zone of this name; one that is unknown counts as UTC."""
    return zone_of(name)


def local_faults(path: str, said: str) -> list[Fault]:
    """Say what is wrong with a local time in the field *path*; empty where it is one."""
    try:
        parse_local(said)
    except ValueError:
        return [Fault(path, "no calendar has this time")]
    return []


def parse_local(said: str) -> datetime:
    """Read a local time such as ``2026-12-01T09:00``; ValueError where no calendar has it."""
    return datetime.fromisoformat(said)


def format_local(local: datetime) -> str:
    """Format a local time, without seconds where it has none."""
    return local.isoformat(timespec="seconds" if local.second else "minutes")


def instant_at(local: datetime, zone: str) -> Instant:
    """Return the instant at which clocks in *zone* show *local*; an unknown zone counts as UTC."""
    return from_datetime(local.replace(tzinfo=zone_named(zone), fold=0))


def local_at(instant: Instant, zone: str) -> datetime:
    """Return what clocks in *zone* show at *instant*."""
    return to_datetime(instant).astimezone(zone_named(zone)).replace(tzinfo=None, fold=0)
