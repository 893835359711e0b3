"""The retention of what analytics count: old rows of each table go by pages, found by its own keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
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
LOOKED_AT: Final = 200
"""Values that rows begin with, such as the names of events, that one read looks at, and one transaction at most."""
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
    """A deletion of at most *n* rows of a table, of before a time."""

    table: _Table
    under: tuple[tuple[Any, ...], ...]
    before: int
    n: int


class SqlAnalyticsRetention:
    """The deletion of old counts: readers find whose there are, the writer deletes those alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def drop(self, now: Instant, days: int, n: int) -> int:
        """Delete at most *n* rows: counts of more than *days* ago, and what is kept for less; how many it was."""
        left = n
        for table, kept_days, unit in (
            (_ROLLUP, days, SLOT_MS),
            (_EVENT_SLOT, days, SLOT_MS),
            (_USER_EVENT, days, DAY_MS),
            (_USER_HOUR, HABIT_DAYS, MONTH_MS),
            (_EVENT_ID, ID_DAYS, DAY_MS),
        ):
            left -= await self._drop_of(table, later(now, -kept_days * DAY_MS) // unit, left)
        return n - left

    async def _drop_of(self, table: _Table, before: int, n: int) -> int:
        left = n
        after: tuple[Any, ...] | None = ("",) * len(table.under)
        while left and after is not None:
            under, after = await self._database.read(partial(_with_old, table, before, after))
            if under:
                order = _Order(table, under, before, left)
                left -= await self._database.commits.submit(_DROPPING, order, rows=left)
        return n - left


def _with_old(
    table: _Table, before: int, after: tuple[Any, ...], connection: Connection
) -> tuple[tuple[tuple[Any, ...], ...], tuple[Any, ...] | None]:
    """Look at a page of the values that rows begin with: those that have old rows, and where the next page begins."""
    same = "".join(f"{name} = ? AND " for name in table.under)
    is_old = f"SELECT 1 FROM {table.name} WHERE {same}{table.time} < ? LIMIT 1"  # noqa: S608 - names of ours
    looked_at = list(islice(_values(connection, table, after), LOOKED_AT))
    found = tuple(each for each in looked_at if connection.execute(is_old, (*each, before)).fetchone())
    return found, looked_at[-1] if len(looked_at) == LOOKED_AT else None


def _values(connection: Connection, table: _Table, after: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the values that rows begin with, behind *after*, each found by one step in the index."""
    if not table.under:
        yield ()
        return
    names = ", ".join(table.under)
    marks = ", ".join("?" * len(table.under))
    sql = f"SELECT {names} FROM {table.name} WHERE ({names}) > ({marks}) ORDER BY {names} LIMIT 1"  # noqa: S608 - as above
    while found := connection.execute(sql, after).fetchone():
        yield (after := tuple(found))


def _drop(transaction: Transaction, orders: Sequence[_Order]) -> list[int]:
    return [_drop_page(transaction.connection, order) for order in orders]


def _drop_page(connection: Connection, order: _Order) -> int:
    left = order.n
    for under in order.under:
        if left:
            left -= _delete(connection, order.table, under, order.before, left)
    return order.n - left


def _delete(connection: Connection, table: _Table, under: tuple[Any, ...], before: int, n: int) -> int:
    key, same = ", ".join(table.key), "".join(f"{name} = ? AND " for name in table.under)
    sql = (
        f"DELETE FROM {table.name} WHERE ({key}) IN"  # noqa: S608 - names of ours
        f" (SELECT {key} FROM {table.name} WHERE {same}{table.time} < ? LIMIT ?)"
    )
    return connection.execute(sql, (*under, before, n)).rowcount


_DROPPING: Final = OperationKind("drop_old_counts", _drop, durable=False, patient=True)
