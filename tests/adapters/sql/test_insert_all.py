"""Rows that share what is alike are written as rows that do not."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from waypost.stores.sql.connection import connect
from waypost.stores.sql.driver import Row

_TABLE = "CREATE TABLE kept (seq INTEGER PRIMARY KEY, lane TEXT, word TEXT, id BLOB, until INTEGER)"
_INSERT, _VALUES = "INSERT INTO kept (seq, lane, word, id, until) VALUES ", "(?, ?, 'said', ?, ?)"


def _rows(count: int, lanes: list[str | None]) -> list[Row]:
    chance = random.Random(count)
    return [(n, chance.choice(lanes), chance.randbytes(16), chance.choice([None, 7])) for n in range(count)]


@pytest.mark.parametrize("lanes", [["normal"], [None], ["normal", "critical"]])
@pytest.mark.parametrize("count", [0, 1, 4, 21, 64, 343, 600])
def test_what_is_alike_is_in_every_row(tmp_path: Path, count: int, lanes: list[str | None]) -> None:
    """Whether it is alike, or only was thought to be."""
    rows = _rows(count, lanes)
    with closing(connect(tmp_path / "alike.db")) as connection:
        connection.execute(_TABLE)
        connection.insert_all(_INSERT, _VALUES, rows, (1,))
        kept = connection.execute("SELECT seq, lane, id, until, word FROM kept ORDER BY seq").fetchall()
    assert kept == [(*row, "said") for row in rows]


def test_more_than_one_place_may_be_alike(tmp_path: Path) -> None:
    """In whatever order they stand beside the others."""
    rows = [(n, "normal", bytes([n]), 7) for n in range(70)]
    with closing(connect(tmp_path / "alike.db")) as connection:
        connection.execute(_TABLE)
        connection.insert_all(_INSERT, _VALUES, rows, (1, 3))
        kept = connection.execute("SELECT seq, lane, id, until FROM kept ORDER BY seq").fetchall()
    assert kept == rows
