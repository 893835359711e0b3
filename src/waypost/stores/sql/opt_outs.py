"""Who wants no bulk sends, on SQL: one row each."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.stores.sql.database import Database
from waypost.stores.sql.transaction import OperationKind, Transaction

_HAS = "SELECT 1 FROM opt_out WHERE app = ? AND user_id = ?"
_PUT = "INSERT INTO opt_out (app, user_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_REMOVE = "DELETE FROM opt_out WHERE app = ? AND user_id = ?"


class SqlOptOuts:
    """See ports.bulk.OptOuts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, app: AppId, user_id: UserId, at: Instant) -> None:
        """See OptOuts."""
        await self._database.commits.submit(_PUTTING, (app, user_id, at))

    async def remove(self, app: AppId, user_id: UserId) -> bool:
        """See OptOuts."""
        return await self._database.commits.submit(_REMOVING, (app, user_id))

    async def has(self, app: AppId, user_id: UserId) -> bool:
        """See OptOuts."""
        return await self._database.read(
            lambda connection: connection.execute(_HAS, (app, user_id)).fetchone() is not None
        )


def _put(transaction: Transaction, rows: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    transaction.connection.executemany(_PUT, rows)
    return [None] * len(rows)


def _remove(transaction: Transaction, keys: Sequence[tuple[AppId, UserId]]) -> list[bool]:
    return [transaction.connection.execute(_REMOVE, key).rowcount > 0 for key in keys]


_PUTTING = OperationKind("put_opt_out", _put, durable=True)
_REMOVING = OperationKind("remove_opt_out", _remove, durable=True)
