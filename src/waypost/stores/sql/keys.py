"""API keys on SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waypost.domain.ids import AppId
from waypost.domain.scope import EVERY_SCOPE, Scope
from waypost.domain.time import Instant
from waypost.ports.keys import ApiKey, made_for_ms
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

_READ = """\
SELECT k.prefix, k.secret_hash, k.app, k.caller, k.created_at, k.last_used_at, k.revoked_at,
t.scopes, t.expires_at, t.made_for_ms
FROM api_key k LEFT JOIN key_terms t ON t.prefix = k.prefix
"""
_ADD = "INSERT INTO api_key VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (prefix) DO NOTHING"
_ADD_TERMS = "INSERT INTO key_terms (prefix, scopes, expires_at) VALUES (?, ?, ?)"
_REVOKE = "UPDATE api_key SET revoked_at = ? WHERE prefix = ? AND revoked_at IS NULL"
_IS_LIVE = "SELECT 1 FROM api_key WHERE prefix = ? AND revoked_at IS NULL"
_END = """\
INSERT INTO key_terms (prefix, expires_at, made_for_ms) VALUES (?, ?, ?) ON CONFLICT (prefix) DO UPDATE SET expires_at =
CASE WHEN key_terms.expires_at < excluded.expires_at THEN key_terms.expires_at ELSE excluded.expires_at END,
made_for_ms = excluded.made_for_ms
"""
_TOUCH = "UPDATE api_key SET last_used_at = ?1 WHERE prefix = ?2 AND coalesce(last_used_at, 0) < ?1"


class SqlKeys:
    """The API keys by their prefix; few rows, read whole."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, prefix: str) -> ApiKey | None:
        """See Keys."""
        found = await self._database.read(lambda connection: _fetch(connection, f"{_READ} WHERE k.prefix = ?", prefix))
        return found[0] if found else None

    async def add(self, key: ApiKey) -> None:
        """See Keys."""
        await self._database.commits.submit(_ADDING, key)

    async def all(self, app: AppId | None = None) -> list[ApiKey]:
        """See Keys."""
        chosen = f"{_READ} WHERE CAST(?1 AS TEXT) IS NULL OR k.app = ?1 ORDER BY k.created_at, k.prefix"
        return await self._database.read(lambda connection: _fetch(connection, chosen, app))

    async def revoke(self, prefix: str, at: Instant) -> bool:
        """See Keys."""
        return await self._database.commits.submit(_REVOKING, (prefix, at))

    async def replace(self, prefix: str, key: ApiKey, until: Instant) -> bool:
        """See Keys."""
        return await self._database.commits.submit(_REPLACING, (prefix, key, until))

    async def touch(self, uses: Mapping[str, Instant]) -> None:
        """See Keys."""
        await self._database.commits.submit(_TOUCHING, uses)


def _fetch(connection: Connection, query: str, argument: str | None) -> list[ApiKey]:
    rows = connection.execute(query, (argument,)).fetchall()
    return [ApiKey(*(*row[:7], _scopes_in(row[7]), *row[8:])) for row in rows]


def _scopes_in(text: str | None) -> frozenset[Scope]:
    """Read the scopes in a row; a word of a newer version gives nothing."""
    return EVERY_SCOPE if text is None else frozenset(scope for scope in Scope if scope in text.split())


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
        terms = (key.prefix, " ".join(sorted(key.scopes)), key.expires_at)
        transaction.connection.execute(_ADD_TERMS, terms)
    return [None] * len(keys)


def _revoke(transaction: Transaction, orders: Sequence[tuple[str, Instant]]) -> list[bool]:
    return [transaction.connection.execute(_REVOKE, (at, prefix)).rowcount > 0 for prefix, at in orders]


def _replace(transaction: Transaction, orders: Sequence[tuple[str, ApiKey, Instant]]) -> list[bool]:
    return [_replace_one(transaction, *order) for order in orders]


def _replace_one(transaction: Transaction, prefix: str, key: ApiKey, until: Instant) -> bool:
    if transaction.connection.execute(_IS_LIVE, (prefix,)).fetchone() is None:
        return False
    _add(transaction, [key])
    transaction.connection.execute(_END, (prefix, until, made_for_ms(key)))
    return True


def _touch(transaction: Transaction, uses: Sequence[Mapping[str, Instant]]) -> list[None]:
    for each in uses:
        for prefix, at in sorted(each.items()):  # in one order, so that two processes do not wait for each other
            transaction.connection.execute(_TOUCH, (at, prefix))
    return [None] * len(uses)


_ADDING = OperationKind("add_key", _add, durable=True)
_REVOKING = OperationKind("revoke_key", _revoke, durable=True)
_REPLACING = OperationKind("replace_key", _replace, durable=True)
_TOUCHING = OperationKind("touch_key", _touch, durable=False)
