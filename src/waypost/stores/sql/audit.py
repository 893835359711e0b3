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
_PAGE: Final = """\
SELECT seq, at, app, ordered_by, origin, act, subject FROM audit
WHERE app = ? AND seq < ?{conditions} ORDER BY seq DESC LIMIT ?
"""
PAGES: Final = {
    (has_act, has_by): _PAGE.format(conditions=" AND act = ?" * has_act + " AND ordered_by = ?" * has_by)
    for has_act in (False, True)
    for has_by in (False, True)
}
"""A statement for each filter: a condition that may be left out would be read through, not looked up."""
OLD: Final = "SELECT seq FROM audit WHERE at < ? ORDER BY at LIMIT ?"
_DROP: Final = f"DELETE FROM audit WHERE seq IN ({OLD})"  # noqa: S608 - a statement of ours


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
        wanted = [each for each in (query.act, query.by) if each is not None]
        sql, bound = PAGES[query.act is not None, query.by is not None], (query.app, before, *wanted, query.limit)
        rows = await self._database.read(lambda connection: connection.execute(sql, bound).fetchall())
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
