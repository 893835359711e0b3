"""Results by scenario: kept in a file, printed as a table, and written into the page."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypedDict

from waypost.bench.rows import Row

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "benchmarks" / "results" / "load.json"
PAGE: Final = ROOT / "docs" / "internals" / "load.md"
BEGIN: Final = "<!-- the report: `python -m benchmarks.load --page` writes it -->"
END: Final = "<!-- the end of the report -->"
_HEAD: Final = "| what | seen | against | times |\n|---|---|---|---|"


class Result(TypedDict):
    """The result of one scenario, and its time."""

    taken: str
    machine: str
    seconds: float
    rows: list[Row]


Results = Mapping[str, Result]


def result(rows: list[Row], seconds: float) -> Result:
    """Build the result of a scenario that has just ended."""
    taken = datetime.now(UTC).isoformat(timespec="minutes")
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, Linux {platform.release().split('-')[0]}"
    return Result(taken=taken, machine=machine, seconds=seconds, rows=rows)


def kept(file: Path = FILE) -> dict[str, Result]:
    """Read what was kept before, by scenario."""
    return dict(json.loads(file.read_text())) if file.exists() else {}


def keep(results: Results, file: Path = FILE) -> None:
    """Put results beside those of other scenarios that were kept before."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(kept(file) | dict(results), indent=1, ensure_ascii=False) + "\n")


def report(results: Results) -> str:
    """Write the tables of a page."""
    return "\n\n".join(_section(name, each) for name, each in results.items())


def written(page: str, results: Results) -> str:
    """Put the report in its place on the page."""
    whole = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if whole.search(page) is None:
        raise ValueError("the page has no place for the report")
    return whole.sub(lambda _: f"{BEGIN}\n\n{report(results)}\n\n{END}", page)


def _section(name: str, result: Result) -> str:
    taken = f"{result['taken'][:10]}, {result['machine']}, `SECONDS={result['seconds']:g}`."
    return "\n".join([f"### {name}", "", taken, "", _HEAD, *map(_line, result["rows"])])


def _line(row: Row) -> str:
    value = f"{row['value']:,.0f}" if abs(row["value"]) >= 100 else f"{row['value']:g}"
    ratio = "" if row["ratio"] is None else f"{row['ratio']:g}"
    return f"| {row['name']} | {value} {row['unit']}".rstrip() + f" | {row['against'] or ''} | {ratio} |"
