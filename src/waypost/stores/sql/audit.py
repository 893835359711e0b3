"""The record of orders on SQL: rows are inserted, read by pages of their number, and deleted when they are old."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from waypost.domain.time import Instant
from waypost.ports.audit import Act, AuditEntry, AuditQuery, Ordered
from waypost.stores.sql.database import Database
from waypost.stores.sql.transaction import OperationKind, Transaction

_NEWEST: Final = (1 << 62) - 1
_RECORD = "INSERT INTO audit (at, app, ordered_by, origin, act, subject) VALUES (?, ?, ?, ?, ?, ?)"
_PAGE = """\
SELECT seq, at, app, ordered_by, origin, act, subject FROM audit
WHERE app = ?1 AND seq < ?2 AND (CAST(?3 AS TEXT) IS NULL OR act = ?3)
AND (CAST(?4 AS TEXT) IS NULL OR ordered_by = ?4) ORDER BY seq DESC LIMIT ?5
"""
_DROP = "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < ? ORDER BY seq LIMIT ?)"


class _Old(Struct, frozen=True):
    """A page of old entries to drop, at most."""

    before: Instant
    n: int


class SqlAudit:
    """See Audit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, orders: Sequence[Ordered]) -> None:
        """See Audit."""
        await self._database.commits.submit(_RECORDING, orders, len(orders))

    async def page(self, query: AuditQuery) -> Sequence[AuditEntry]:
        """See Audit."""
        before = _NEWEST if query.before is None else query.before
        bound = (query.app, before, query.act, query.by, query.limit)
        rows = await self._database.read(lambda connection: connection.execute(_PAGE, bound).fetchall())
        return [AuditEntry(row[0], Ordered(row[1], row[2], row[3], row[4], Act(row[5]), row[6])) for row in rows]

    async def drop_before(self, before: Instant, n: int) -> int:
        """See Audit."""
        return await self._database.commits.submit(_DROPPING, _Old(before, n), n)


def _record(transaction: Transaction, batches: Sequence[Sequence[Ordered]]) -> list[None]:
    transaction.connection.executemany(_RECORD, [astuple(order) for batch in batches for order in batch])
    return [None] * len(batches)


def _drop(transaction: Transaction, pages: Sequence[_Old]) -> list[int]:
    return [transaction.connection.execute(_DROP, (page.before, page.n)).rowcount for page in pages]


_RECORDING: OperationKind[Sequence[Ordered], None] = OperationKind("record_audit", _record, durable=True)
_DROPPING: OperationKind[_Old, int] = OperationKind("drop_audit", _drop, durable=False)
