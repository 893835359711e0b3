"""A figure of a bench."""

from __future__ import annotations

from typing import TypedDict


class Row(TypedDict):
    """A line of the table and of results/latest.json."""

    bench: str
    name: str
    value: float
    unit: str
    against: str | None
    """The thing that it is measured against, and its figure in the same run."""
    ratio: float | None
    """The value divided by that."""


def row(bench: str, name: str, value: float, unit: str, against: str | None = None, ratio: float | None = None) -> Row:
    """Build a figure with three significant digits."""
    shown = None if ratio is None else _short(ratio)
    return Row(bench=bench, name=name, value=_short(value), unit=unit, against=against, ratio=shown)


def _short(value: float) -> float:
    return float(f"{value:.3g}") if abs(value) < 1000 else float(round(value))
