"""How fast a store grows, and when its disk is full. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

DAYS: Final = 14
"""Days by which growth is told: two weeks have each day of the week twice."""


class Size(Struct, frozen=True):
    """The size of a store at the end of a day, or by now."""

    day: int
    """Days since 1970."""
    size: int
    """Bytes."""


class Forecast(Struct, frozen=True):
    """The growth of a store, and what follows from it."""

    size: int
    """Bytes now."""
    bytes_a_day: int | None
    """None before it was measured on two days; below 0 it shrinks."""
    days_left: float | None
    """Days until the disk is full if it goes on so; None where it does not, or whose disk that is is not known."""


def forecast(sizes: Sequence[Size], free: int | None) -> Forecast:
    """Tell how a store grows by its *sizes*, the oldest first; *free* is what is left on its disk."""
    if not sizes:
        return Forecast(0, None, None)
    last = sizes[-1]
    first = next(each for each in sizes if each.day >= last.day - DAYS)
    if first.day == last.day:
        return Forecast(last.size, None, None)
    growth = round((last.size - first.size) / (last.day - first.day))
    return Forecast(last.size, growth, round(free / growth, 1) if free is not None and growth > 0 else None)
