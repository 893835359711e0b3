"""The size of the store by day, on SQL: one row a day, for a month."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.growth import Forecast, Size, forecast
from waypost.domain.time import DAY_MS, Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

TABLE: Final = AddedTable(
    "store_size",
    "CREATE TABLE IF NOT EXISTS store_size (day {number} NOT NULL, size {number} NOT NULL, PRIMARY KEY (day)){layout}",
)
KEPT_DAYS: Final = 30
_ON_FILE: Final = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
_ON_SERVER: Final = "SELECT pg_database_size(current_database())"
_NOTE: Final = "INSERT INTO store_size (day, size) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET size = excluded.size"
_FORGET: Final = "DELETE FROM store_size WHERE day < ?"
_SIZES: Final = "SELECT day, size FROM store_size ORDER BY day"


class SqlStoreSizes:
    """The sizes of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, now: Instant) -> None:
        """Note how large the store is today."""
        sql = _ON_SERVER if self._database.engine.is_remote else _ON_FILE
        ((size,),) = await self._database.read(lambda connection: connection.execute(sql).fetchall())
        await self._database.commits.submit(_NOTING, Size(now // DAY_MS, size))

    async def forecast(self, free: int | None) -> Forecast:
        """Tell how the store grows; *free* is what is left on the disk that it is on, as far as that is known here."""
        return forecast(await self._database.read(_sizes), None if self._database.engine.is_remote else free)


def _sizes(connection: Connection) -> list[Size]:
    return [Size(*row) for row in connection.execute(_SIZES).fetchall()]


def _note(transaction: Transaction, sizes: Sequence[Size]) -> list[None]:
    for each in sizes:
        transaction.connection.execute(_NOTE, (each.day, each.size))
        transaction.connection.execute(_FORGET, (each.day - KEPT_DAYS,))
    return [None] * len(sizes)


_NOTING: Final = OperationKind("note_store_size", _note, durable=False, patient=True)
