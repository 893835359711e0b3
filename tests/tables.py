"""Tables that tests fill and the terminal summary prints; rows travel on reports, so that many processes may run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

PROPERTY = "table row"

AddRow = Callable[..., None]
"""``table("kills", workers=2, lost=0)``: one row of the table of that title."""


def adder(item: pytest.Item) -> AddRow:
    """What adds rows on behalf of one test."""

    def add(title: str, **columns: object) -> None:
        item.user_properties.append((PROPERTY, [title, {name: str(cell) for name, cell in columns.items()}]))

    return add


def collected(reports: Iterable[pytest.TestReport]) -> dict[str, list[dict[str, str]]]:
    """The rows of each table in the order of the tests; equal rows are one."""
    tables: dict[str, list[dict[str, str]]] = {}
    for report in sorted(reports, key=lambda report: report.nodeid):
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, list):
                title, row = value
                rows = tables.setdefault(title, [])
                if row not in rows:
                    rows.append(row)
    return tables


def drawn(rows: list[dict[str, str]]) -> list[str]:
    """A table's lines, its columns as wide as they need be."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([row.get(name, "") for name in names] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(names))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
