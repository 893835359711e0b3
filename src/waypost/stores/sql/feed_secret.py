"""The secret of tickets to live connections, on SQL: one for all processes of an installation."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.transaction import OperationKind, Transaction

TABLE: Final = AddedTable(
    "feed_secret",
    "CREATE TABLE IF NOT EXISTS feed_secret (id {number} NOT NULL PRIMARY KEY, secret {blob} NOT NULL){layout}",
)
_MAKE: Final = "INSERT INTO feed_secret (id, secret) VALUES (1, ?) ON CONFLICT DO NOTHING"
_READ: Final = "SELECT secret FROM feed_secret WHERE id = 1"
SECRET_BYTES: Final = 32


class SqlFeedSecret:
    """The secret, made by whoever needs it first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._secret: bytes | None = None

    async def get(self) -> bytes:
        """Return the secret, which stays the same for ever."""
        if self._secret is None:
            self._secret = await self._database.commits.submit(_MAKING, secrets.token_bytes(SECRET_BYTES))
        return self._secret


def _make(transaction: Transaction, drawn: Sequence[bytes]) -> list[bytes]:
    transaction.connection.executemany(_MAKE, [(each,) for each in drawn[:1]])
    (secret,) = transaction.connection.execute(_READ).fetchone()
    return [bytes(secret)] * len(drawn)


_MAKING: Final = OperationKind("make_feed_secret", _make, durable=True)
