"""API keys on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from waypost.adapters.sql.database import Database
from waypost.adapters.sql.engine import Connection
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.ids import AppId
from waypost.domain.time import Instant
from waypost.ports.keys import ApiKey

_READ = "SELECT prefix, secret_hash, app, caller, created_at, last_used_at, revoked_at FROM api_key"
_ADD = "INSERT INTO api_key VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (prefix) DO NOTHING"
_REVOKE = "UPDATE api_key SET revoked_at = ? WHERE prefix = ? AND revoked_at IS NULL"


class SqlKeys:
    """Keys by their prefix; few rows, read whole."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, prefix: str) -> ApiKey | None:
        """See Keys."""
        found = await self._database.read(lambda connection: _fetch(connection, f"{_READ} WHERE prefix = ?", prefix))
        return found[0] if found else None

    async def add(self, key: ApiKey) -> None:
        """See Keys."""
        await self._database.commits.submit(_ADDING, key)

    async def all(self, app: AppId | None = None) -> list[ApiKey]:
        """See Keys."""
        chosen = f"{_READ} WHERE CAST(?1 AS TEXT) IS NULL OR app = ?1 ORDER BY created_at, prefix"
        return await self._database.read(lambda connection: _fetch(connection, chosen, app))

    async def revoke(self, prefix: str, at: Instant) -> bool:
        """See Keys."""
        return await self._database.commits.submit(_REVOKING, (prefix, at))


def _fetch(connection: Connection, query: str, argument: str | None) -> list[ApiKey]:
    return [ApiKey(*row) for row in connection.execute(query, (argument,)).fetchall()]


def _add(transaction: Transaction, keys: Sequence[ApiKey]) -> list[None]:
    for key in keys:
        row: tuple[Any, ...] = (
            key.prefix,
            key.secret_hash,
            key.app,
            key.caller,
            key.created_at,
            key.last_used_at,
            key.revoked_at,
        )
        if transaction.connection.execute(_ADD, row).rowcount == 0:
            raise ValueError(f"the prefix {key.prefix} is in use")
    return [None] * len(keys)


def _revoke(transaction: Transaction, orders: Sequence[tuple[str, Instant]]) -> list[bool]:
    return [transaction.connection.execute(_REVOKE, (at, prefix)).rowcount > 0 for prefix, at in orders]


_ADDING = Kind("add_key", _add, durable=True)
_REVOKING = Kind("revoke_key", _revoke, durable=True)
