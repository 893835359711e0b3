"""All of one run: kept as results/latest.json, printed as tables, and beside the page as a committed file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from waypost.bench.figures import Line, Ran, Report, lines
from waypost.bench.machine import machine
from waypost.bench.rows import Row

LATEST: Final = Path(__file__).parent / "results" / "latest.json"
_WIDTH: Final = 190


def report(rows: list[Row], benches: Mapping[str, Ran]) -> Report:
    """Build the report of what there is so far."""
    here, taken = machine(), datetime.now(UTC).isoformat(timespec="seconds")
    table = lines(rows, benches, here["interpreter"])
    return Report(taken=taken, machine=here, benches=dict(benches), results=rows, table=table)


def keep(made: Report) -> None:
    """Write it where the next run's will be."""
    LATEST.parent.mkdir(exist_ok=True)
    LATEST.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def print_rows(rows: Iterable[Row]) -> None:
    """Print what one bench measured."""
    table = Table("bench", "what", "value", "unit", "against", "ratio")
    for each in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in each.values()))
    Console(width=_WIDTH).print(table)


def print_table(table: Iterable[Line]) -> None:
    """The figures that are wanted, in one table."""
    made = Table("figure", "wanted", "measured", "met", "others", "interpreter")
    for each in table:
        made.add_row(*map(str, each.values()))
    Console(width=_WIDTH, markup=False).print(made)
