"""Recurrence: at which local times something is repeated, by a rule of RFC 5545 (section 3.3.10). Pure.

All of it is local time: which instant one is follows from the zone (``domain.local_time``), so that nine o'clock stays
nine o'clock over clock changes, and a user who moves misses nothing and gets nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from waypost.domain.local_time import format_local, local_at, parse_local
from waypost.domain.time import from_datetime

if TYPE_CHECKING:
    from dateutil.rrule import rruleset

COUNT_LIMIT: Final = 10_000
TIMES_A_DAY_LIMIT: Final = 48
_PART: Final = re.compile(r"([A-Z]+)=([A-Z0-9+,-]+)")
_UNTIL: Final = re.compile(r"([0-9]{8})(T[0-9]{6}(Z?))?")
_RANGES: Final = {
    "INTERVAL": (1, 1_000),
    "COUNT": (1, COUNT_LIMIT),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYSETPOS": (-366, 366),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
}
_DAILY: Final = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYHOUR", "BYMINUTE", "WKST"})
_ALLOWED: Final = {
    "DAILY": _DAILY,
    "WEEKLY": _DAILY,
    "MONTHLY": _DAILY | {"BYMONTHDAY", "BYMONTH", "BYSETPOS"},
    "YEARLY": _DAILY | {"BYMONTHDAY", "BYMONTH", "BYSETPOS", "BYYEARDAY", "BYWEEKNO"},
}
"""What may stand beside each frequency; more seldom ones say the rest, and no rule searches for long."""
_DAYS: Final = re.compile(r"([+-]?[1-9][0-9]?)?(MO|TU|WE|TH|FR|SA|SU)")
_LATE: Final = datetime(9959, 1, 1)  # noqa: DTZ001 - a local time
"""A time so near to the end of the calendar that a rule that fits no day is found out at once."""


class Recurrence(Struct, frozen=True, omit_defaults=True):
    """A rule, where it begins, and its exceptions; all local times."""

    starts: str
    rule: str | None = None
    """The value of an ``RRULE``; None is once."""
    without: tuple[str, ...] = ()
    """Times of the rule that are left out (``EXDATE``)."""
    also: tuple[str, ...] = ()
    """Times beside the rule (``RDATE``)."""


class BadRule(ValueError):
    """The rule cannot be followed, and why."""


def normalised(rule: str, zone: str) -> str:
    """Return *rule* with a local ``UNTIL``; BadRule says what is wrong with it."""
    parts = _parts(rule)
    frequency = parts.get("FREQ", "")
    if frequency not in _ALLOWED:
        raise BadRule("FREQ is DAILY, WEEKLY, MONTHLY or YEARLY; BYHOUR and BYMINUTE say several times a day")
    if unfit := sorted(parts.keys() - _ALLOWED[frequency]):
        raise BadRule(f"{unfit[0]} is not known, or not for FREQ={frequency}")
    if "COUNT" in parts and "UNTIL" in parts:
        raise BadRule("has both COUNT and UNTIL")
    for name, value in parts.items():
        _check(name, value, frequency)
    if len(parts.get("BYHOUR", "").split(",")) * len(parts.get("BYMINUTE", "").split(",")) > TIMES_A_DAY_LIMIT:
        raise BadRule(f"names more than {TIMES_A_DAY_LIMIT} times a day")
    if "UNTIL" in parts:
        parts["UNTIL"] = _local_until(parts["UNTIL"], zone)
    return ";".join(f"{name}={value}" for name, value in parts.items())


def _parts(rule: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in rule.upper().removeprefix("RRULE:").split(";"):
        found = _PART.fullmatch(part)
        if found is None or found[1] in parts:
            raise BadRule("is no RRULE such as FREQ=WEEKLY;BYDAY=MO,WE")
        parts[found[1]] = found[2]
    return parts


def _check(name: str, value: str, frequency: str) -> None:
    if name in _RANGES:
        least, most = _RANGES[name]
        for each in value.split(","):
            if not re.fullmatch("[+-]?[0-9]{1,5}", each) or not least <= int(each) <= most or (least < 0 == int(each)):
                raise BadRule(f"{name} is from {least} to {most}" + (", not 0" if least < 0 else ""))
        if name in ("INTERVAL", "COUNT") and "," in value:
            raise BadRule(f"{name} is one number")
    if name == "BYDAY":
        for each in value.split(","):
            found = _DAYS.fullmatch(each)
            if found is None or (found[1] is not None and frequency in ("DAILY", "WEEKLY")):
                raise BadRule(
                    "BYDAY names days such as MO,WE; a number before one, such as -1FR, is for months and years"
                )
    if name == "WKST" and not re.fullmatch("MO|TU|WE|TH|FR|SA|SU", value):
        raise BadRule("WKST is a day such as MO")
    if name == "UNTIL" and not _UNTIL.fullmatch(value):
        raise BadRule("UNTIL is a day such as 20261231 or a time such as 20261231T090000")


def _local_until(value: str, zone: str) -> str:
    """Return the last local time that is meant: a day is meant with all of it, and ``Z`` is UTC."""
    day, time = value[:8], value[8:].removesuffix("Z") or "T235959"
    try:
        last = datetime.fromisoformat(day + time)
        if value.endswith("Z"):
            last = local_at(from_datetime(datetime.fromisoformat(day + time + "+00:00")), zone)
    except ValueError:
        raise BadRule("UNTIL is no time of the calendar") from None
    return f"{last:%Y%m%dT%H%M%S}"


def has_times(recurrence: Recurrence) -> bool:
    """Tell whether a rule ever fits."""
    from dateutil.rrule import rrulestr  # noqa: PLC0415 - nothing else needs it

    rule = recurrence.rule
    if rule is not None:
        ever = re.sub(r";(INTERVAL|COUNT|UNTIL)=[^;]*", "", rule)
        if rrulestr(ever, dtstart=_LATE).after(_LATE, inc=True) is None:
            return False
    return next(following(recurrence, None), None) is not None


def following(recurrence: Recurrence, after: datetime | None) -> Iterator[datetime]:
    """Yield the local times after *after*, or all of them, in their order."""
    times = _times(recurrence)
    if after is None:
        yield from times
    else:
        yield from times.xafter(after)


def first_after(recurrence: Recurrence, after: datetime | None) -> datetime | None:
    """Return the first local time after *after*, if there is one."""
    return next(following(recurrence, after), None)


def is_one(recurrence: Recurrence, local: datetime) -> bool:
    """Tell whether *local* is one of the times."""
    return local in islice(_times(recurrence).xafter(local, inc=True), 1)


def without(recurrence: Recurrence, local: datetime, instead: datetime | None = None) -> Recurrence:
    """Return the recurrence without one of its times, and with another one *instead*."""
    said = format_local(local)
    also = [each for each in recurrence.also if each != said]
    left_out = {*recurrence.without, said}
    if instead is not None:
        also.append(format_local(instead))
        left_out.discard(format_local(instead))
    return Recurrence(recurrence.starts, recurrence.rule, tuple(sorted(left_out)), tuple(sorted(set(also))))


@lru_cache(maxsize=256)
def _times(recurrence: Recurrence) -> rruleset:
    from dateutil.rrule import rruleset, rrulestr  # noqa: PLC0415 - as above

    starts, times = parse_local(recurrence.starts), rruleset()
    if recurrence.rule is None:
        times.rdate(starts)
    else:
        times.rrule(rrulestr(recurrence.rule, dtstart=starts))
    for each in recurrence.also:
        times.rdate(parse_local(each))
    for each in recurrence.without:
        times.exdate(parse_local(each))
    return times
