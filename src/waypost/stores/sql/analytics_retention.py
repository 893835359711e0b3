"""The retention of what analytics count: old rows of each table go by pages, found by its own keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from waypost.domain.rollup import MONTH_MS
from waypost.domain.time import DAY_MS, Instant, later
from waypost.domain.tracked import SLOT_MS
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

ID_DAYS: Final = 32
"""Days for which the id of an event is known."""
HABIT_DAYS: Final = 120
"""Days for which it is known when users read: 90 count."""


class _Table(Struct, frozen=True):
    """A table whose rows go once their *time* is over, among those that begin with the same values of *under*."""

    name: str
    under: tuple[str, ...]
    time: str
    key: tuple[str, ...]


_ROLLUP: Final = _Table(
    "rollup",
    ("app",),
    "slot",
    ("app", "slot", "campaign", "event", "type", "channel", "platform", "variant", "template"),
)
_EVENT_SLOT: Final = _Table("event_slot", ("app", "name"), "slot", ("app", "name", "slot"))
_USER_EVENT: Final = _Table("user_event", ("app", "name"), "day", ("app", "user_id", "name", "day"))
_USER_HOUR: Final = _Table("user_hour", ("app",), "month", ("app", "month", "user_id", "hour"))
_EVENT_ID: Final = _Table("event_id", (), "day", ("day", "id"))


class _Order(Struct, frozen=True):
    now: Instant
    days: int
    n: int


class SqlAnalyticsRetention:
    """The deletion of old counts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def drop(self, now: Instant, days: int, n: int) -> int:
        """Delete at most *n* rows: counts of more than *days* ago, and what is kept for less; how many it was."""
        return await self._database.commits.submit(_DROPPING, _Order(now, days, n), rows=n)


def _drop(transaction: Transaction, orders: Sequence[_Order]) -> list[int]:
    return [_drop_page(transaction.connection, order) for order in orders]


def _drop_page(connection: Connection, order: _Order) -> int:
    left = order.n
    for table, days, unit in (
        (_ROLLUP, order.days, SLOT_MS),
        (_EVENT_SLOT, order.days, SLOT_MS),
        (_USER_EVENT, order.days, DAY_MS),
        (_USER_HOUR, HABIT_DAYS, MONTH_MS),
        (_EVENT_ID, ID_DAYS, DAY_MS),
    ):
        before = later(order.now, -days * DAY_MS) // unit
        for under in _values(connection, table):
            if left:
                left -= _delete(connection, table, under, before, left)
    return order.n - left


def _delete(connection: Connection, table: _Table, under: tuple[Any, ...], before: int, n: int) -> int:
    key, same = ", ".join(table.key), "".join(f"{name} = ? AND " for name in table.under)
    sql = (
        f"DELETE FROM {table.name} WHERE ({key}) IN"  # noqa: S608 - names of ours
        f" (SELECT {key} FROM {table.name} WHERE {same}{table.time} < ? LIMIT ?)"
    )
    return connection.execute(sql, (*under, before, n)).rowcount


def _values(connection: Connection, table: _Table) -> Iterator[tuple[Any, ...]]:
    """Yield the values that rows begin with, each found by one step in the index."""
    if not table.under:
        yield ()
        return
    names = ", ".join(table.under)
    marks = ", ".join("?" * len(table.under))
    sql = f"SELECT {names} FROM {table.name} WHERE ({names}) > ({marks}) ORDER BY {names} LIMIT 1"  # noqa: S608 - as above
    at: tuple[Any, ...] = ("",) * len(table.under)
    while found := connection.execute(sql, at).fetchone():
        yield (at := tuple(found))


_DROPPING: Final = OperationKind("drop_old_counts", _drop, durable=False, patient=True)
