"""The history of users on SQLite: its index is cut into slices by the order of ids.

    history_slice   first, number, after_seq: the ids from *first* up to the next slice's are in the slice *number*
    notification    slice: the number

An index by user alone takes each new row on a page of its own, which is read, logged and copied; in one small slice new
rows share pages. A read walks the slices, which are in the order of ids, until it has enough. They are no shorter than
a few thousand rows, and not many hundreds, so that whoever has nothing is told so soon (decision 0093).

PostgreSQL, whose table is divided by month, has an index by user: ``statements.translated`` leaves the slices out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from waypost.domain.ids import NotificationId
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.transaction import OperationKind, Transaction

SLICES: Final = "history_slice CROSS JOIN notification INDEXED BY notification_history ON slice = number AND first < ?3"
"""The tables from which a user's rows are read, of those with ``id < ?3``."""
NEWEST_FIRST: Final = "ORDER BY first DESC, id DESC"
OLDEST_FIRST: Final = "ORDER BY first, id"

SHORTEST: Final = 8192
"""Rows of a slice, at least: its part of the index is some hundred pages."""
PARTS: Final = 256
"""The part of all rows that a slice may be at least, so that there are not many more slices than that."""

_ALIKE: Final = frozenset(
    {
        *("slice", "status", "finished_at", "duplicate_of", "app", "caller", "lane", "kind", "urgency", "guarantee"),
        *("ttl_ms", "retry_policy", "device_ids", "collapses"),
    }
)
"""The columns that mostly are the same in all that is accepted together."""

_CURRENT = "SELECT first, number, after_seq FROM history_slice ORDER BY first DESC LIMIT 1"
_OLDEST = "SELECT min(seq) FROM notification"
_NEWEST = "SELECT id FROM notification ORDER BY id DESC LIMIT 1"
_OPEN = "INSERT INTO history_slice (first, number, after_seq) VALUES (?, ?, ?)"
_SLICE_OF = """\
SELECT number, first, (SELECT min(first) FROM history_slice WHERE first > ?1)
FROM history_slice WHERE first <= ?1 ORDER BY first DESC LIMIT 1
"""
_DROP_EMPTY = """\
DELETE FROM history_slice WHERE first > x'' AND first < (SELECT max(first) FROM history_slice)
AND NOT EXISTS (SELECT 1 FROM notification INDEXED BY notification_history WHERE slice = number)
"""


class NotificationInsert(Struct, frozen=True):
    """An insert of notifications whose rows begin with *seq*; *id_at* is the place of the id in them."""

    columns: str
    values: str
    id_at: int

    def write(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Insert *rows*, each into its slice where there are slices."""
        if not rows:
            return
        if not connection.dialect.cuts_history:
            connection.insert_all(f"INSERT INTO notification ({self.columns}) VALUES ", f"({self.values})", rows)  # noqa: S608 - names of ours
            return
        _open_if_due(connection, rows[-1][0])
        numbers = _numbers(connection, [row[self.id_at] for row in rows])
        connection.insert_all(
            f"INSERT INTO notification (slice, {self.columns}) VALUES ",  # noqa: S608 - names of ours
            f"(?, {self.values})",
            [(number, *row) for number, row in zip(numbers, rows, strict=True)],
            _places_alike(f"slice, {self.columns}", f"?, {self.values}"),
        )


@cache
def _places_alike(columns: str, values: str) -> tuple[int, ...]:
    """Return the places, in what a row binds, of the columns that mostly are the same in all rows."""
    bound = [name for name, value in zip(columns.split(", "), values.split(", "), strict=True) if value == "?"]
    return tuple(n for n, name in enumerate(bound) if name in _ALIKE)


def _open_if_due(connection: Connection, last: int) -> None:
    """Open a slice for what is newer than all there is, if the newest has its share of the rows up to *last*.

    Where a clock was ahead nothing is newer, until that time: what comes meanwhile is in the slice before.
    """
    first, number, after_seq = connection.execute(_CURRENT).fetchall()[0]
    if last - after_seq < SHORTEST:
        return
    oldest = connection.execute(_OLDEST).fetchall()[0][0]
    if oldest is None or last - after_seq < (last - oldest) // PARTS:
        return
    newest = connection.execute(_NEWEST).fetchall()[0][0]
    if newest >= first:
        connection.execute(_OPEN, (newest + b"\0", number + 1, last))


def _numbers(connection: Connection, ids: Sequence[NotificationId]) -> Iterator[int]:
    """Yield each one's slice; most are the newest's."""
    number, first = 0, ids[0]
    end: NotificationId | None = first
    for each in ids:
        if each < first or (end is not None and each >= end):
            number, first, end = connection.execute(_SLICE_OF, (each,)).fetchall()[0]
        yield number


def _drop_empty(transaction: Transaction, ops: Sequence[None]) -> list[None]:
    """Drop the slices that hold nothing any more; what comes late belongs to the one before from then on."""
    if transaction.connection.dialect.cuts_history:
        transaction.connection.execute(_DROP_EMPTY)
    return [None] * len(ops)


DROP_EMPTY_SLICES: OperationKind[None, None] = OperationKind("retention_of_slices", _drop_empty, durable=False)
