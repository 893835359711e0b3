"""What statements touch on PostgreSQL: each is explained with the blocks that it reads, and undone, before it runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg import pq

from waypost.stores.sql.driver import Cursor
from waypost.stores.sql.postgres.connection import PostgresConnection
from waypost.stores.sql.postgres.statements import translated

_EXPLAINED = ("SELECT", "(SELECT", "WITH", "INSERT", "UPDATE", "DELETE")
_LEVELS = 30
_BLOCKS = ("Shared Hit Blocks", "Shared Read Blocks")


@contextmanager
def counted(is_counted: Callable[[str], bool] = lambda _: True) -> Iterator[Counter[str]]:
    """The blocks by statement, of all connections in this process meanwhile."""
    blocks: Counter[str] = Counter()
    run = PostgresConnection.execute

    def execute(self: PostgresConnection, sql: str, bound: Sequence[Any] = ()) -> Cursor:
        if sql.lstrip().startswith(_EXPLAINED) and not self.is_pipelined and is_counted(sql):
            blocks[sql] += _touched(self, sql, bound)
        return run(self, sql, bound)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresConnection, "execute", execute)
        yield blocks


def _touched(connection: PostgresConnection, sql: str, bound: Sequence[Any]) -> int:
    is_within = connection.raw.info.transaction_status is not pq.TransactionStatus.IDLE
    begin, undo = (b"SAVEPOINT explained", b"ROLLBACK TO explained") if is_within else (b"BEGIN", b"ROLLBACK")
    connection.raw.execute(begin)
    try:
        explained = connection.raw.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + translated(sql), bound)
        ((said,),) = explained.fetchall()
    finally:
        connection.raw.execute(undo)
    plan = (json.loads(said) if isinstance(said, str) else said)[0]["Plan"]
    return sum(int(plan[name]) for name in _BLOCKS)


def does_not_grow(before: int, after: int) -> bool:
    """Tell whether a look touches about as much as before, though four times as much has passed.

    Every index may be a level higher by then, which is as much again as a look at a few rows; a look at all that has
    passed would touch three times as much and more.
    """
    return after <= max(before + _LEVELS, 1.5 * before)
