"""Languages: plural categories, numbers and dates as the CLDR has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Final

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_datetime, format_time
from babel.numbers import format_currency, format_decimal, format_percent

from waypost.domain.profile import zone_of
from waypost.domain.template import as_number

FALLBACK: Final = Locale("en")
WIDTHS: Final = ("short", "medium", "long", "full")
DIGITS_LIMIT: Final = 20


@lru_cache(maxsize=256)
def locale_of(chain: Sequence[str]) -> Locale:
    """Return the first of *chain* that the CLDR knows; English where it knows none."""
    for name in chain:
        try:
            return Locale.parse(name, sep="-")
        except (UnknownLocaleError, ValueError):
            continue
    return FALLBACK


def category_of(count: Any, locale: str) -> str:
    """Return the plural category of *count* in a language; ValueError where it is no number."""
    return str(locale_of(tuple(_shorter(locale))).plural_form(_number(count)))


def number(value: Any, locale: Locale, digits: int | None = None) -> str:
    """Write a number as the language does, with *digits* after the comma."""
    pattern = None if digits is None else "#,##0." + "0" * min(max(digits, 0), DIGITS_LIMIT)
    return str(format_decimal(_number(value), format=pattern, locale=locale))


def money(value: Any, locale: Locale, currency: str) -> str:
    """Write an amount of money; *currency* is its code, such as ``EUR``."""
    if re.fullmatch("[A-Z]{3}", str(currency)) is None:
        raise ValueError("a currency is three letters, such as EUR")
    return str(format_currency(_number(value), currency, locale=locale))


def percent(value: Any, locale: Locale) -> str:
    """Write 0.25 as 25 percent."""
    return str(format_percent(_number(value), locale=locale))


def day(value: Any, locale: Locale, zone: str | None, width: str) -> str:
    """Write a date."""
    moment = _moment(value)
    if isinstance(moment, datetime):
        moment = moment.astimezone(zone_of(zone))
    return str(format_date(moment, format=_width(width), locale=locale))


def clock(value: Any, locale: Locale, zone: str | None, width: str) -> str:
    """Write the time of a day."""
    return str(format_time(_instant(value), format=_width(width), tzinfo=zone_of(zone), locale=locale))


def moment(value: Any, locale: Locale, zone: str | None, width: str) -> str:
    """Write a date and the time of the day."""
    return str(format_datetime(_instant(value), format=_width(width), tzinfo=zone_of(zone), locale=locale))


def _shorter(locale: str) -> list[str]:
    tags = locale.split("-")
    return ["-".join(tags[:n]) for n in range(len(tags), 0, -1)]


def _width(width: str) -> Any:
    if width not in WIDTHS:
        raise ValueError(f"must be one of {', '.join(WIDTHS)}")
    return width


def _number(value: Any) -> int | float:
    found = as_number(value)
    if found is None:
        raise ValueError("no number")
    return found


def _instant(value: Any) -> datetime:
    found = _moment(value)
    if not isinstance(found, datetime):
        raise ValueError("a date without a time")
    return found


def _moment(value: Any) -> date | datetime:
    """Read a time: seconds since 1970, or RFC 3339; a date alone is the same everywhere."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str) or len(value) > 40:
        raise ValueError("no time")
    if len(value) == len("2026-01-31"):
        return date.fromisoformat(value)
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
