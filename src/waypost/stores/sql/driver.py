"""The driver as both databases have it: connections, the answers of statements, and the few words said differently."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct

from waypost.domain.time import Instant

Row = tuple[Any, ...]


class Dialect(Struct, frozen=True):
    """The parts of statements that differ between both engines."""

    row_key: str
    """The column by which a row of ``notification`` is changed: the one that its table is laid out by."""
    locked: str
    """The end of a SELECT of rows that are decided about: locks them, in one order, where there are other writers."""
    snapshot: str
    """The statement that begins a read of several statements."""
    texts: str
    """The expression for the rows of a JSON array of texts."""
    devices_of_users: str
    """A JSON array of pairs (app, user id), ``asked (place, app, user_id)`` from 0, with each user's rows of device."""
    next_numbers: str
    """The statement that moves ``sequence`` on and returns the last number; or gives blocks, by their first numbers."""
    numbers_a_block: int
    """The size of a block; 0: there are no blocks, and numbers are in commit order."""
    blob: str
    """The type of a column of bytes."""
    has_jsonb: bool
    """Whether JSON in a text is read by way of ``jsonb``; else by SQLite's functions."""
    cuts_history: bool
    """Whether the index of a user's history is cut into slices (history.py)."""
    has_other_writers: bool
    """Whether others may write while a transaction is open."""


class Cursor(Protocol):
    """The answer of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that were changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


Answer = Callable[[], list[Row]]
"""A function that returns rows which may still be on their way."""


class Connection(Protocol):
    """A connection; statements are written as SQLite has them."""

    @property
    def dialect(self) -> Dialect:
        """The dialect of its engine."""
        ...

    def execute(self, sql: str, bound: Sequence[Any] = ..., /) -> Cursor:
        """Run one statement; what it binds stands for ``?`` or ``?<n>``."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Cursor:
        """Run one statement for each row."""
        ...

    def lists(self, sql: str, keys: Sequence[Any], /) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield statements, with what they bind, that together serve *keys*, for which ``{keys}`` stands in *sql*."""
        ...

    def ask(self, sql: str, keys: Sequence[Any], /) -> Answer:
        """Ask for the rows of *sql*, whose ``{keys}`` stands for a list of keys."""
        ...

    def ask_in(self, tables: Sequence[str], columns: str, keys: Sequence[bytes], /) -> Answer:
        """Ask for the *columns* of every row of *tables*, all laid out alike, whose ``key`` is one of *keys*.

        ``{table}`` in *columns* is the table of the row.
        """
        ...

    def insert_all(self, insert: str, values: str, rows: Sequence[Row], alike: tuple[int, ...] = ..., /) -> None:
        """Insert *rows*, many at once; *insert* ends with ``VALUES``, *values* is one row's.

        *alike* are the places in a row of what is mostly the same in all.
        """
        ...

    def update_all(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Row], /) -> None:
        """Set *columns* of rows of *table*, many at once; each of *rows* ends with what *key* is of one."""
        ...

    def whole_before(self) -> int:
        """Return the position before which no row of the journal can come any more."""
        ...

    def commit_so_far(self) -> None:
        """Commit what the transaction has done, and go on in another; only where others write meanwhile."""
        ...

    def counter_part(self, now: Instant, /) -> int:
        """Choose which of a counter's rows to move *now*: with other writers, one that is not theirs."""
        ...

    def claim_all(self, table: str, columns: str, rows: Sequence[Row], now: Instant, /) -> None:
        """Insert *rows* of a table of keys, in the place of those that were over *now*.

        Where others write at the same time the commit raises Overtaken if one of the keys was claimed meanwhile.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
