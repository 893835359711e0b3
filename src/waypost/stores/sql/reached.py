"""The places that a reader of an index has reached, on record: nothing that it looks for lies before.

While somebody has an old snapshot (a dump) the server keeps every row that is gone since in its indexes, and a read
from the beginning passes all of them, also that of a process that starts.

    reader   a row for each place, beside those of the journal's readers
"""

from __future__ import annotations

from waypost.stores.sql.driver import Connection

ARRIVALS_DROPPED = "arrivals dropped"
"""The name of the place, a transaction, before which no arrival is left to hear of."""
_REACHED = "SELECT position FROM reader WHERE name = ?"
_REACH = (
    "INSERT INTO reader (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = excluded.position"
)
_GO_BEHIND = (
    "INSERT INTO reader (name, position) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE reader.position < ? RETURNING position"
)


def reached(connection: Connection, name: str) -> int:
    """Read how far it is; 0 where nobody said."""
    row = connection.execute(_REACHED, (name,)).fetchone()
    return 0 if row is None else int(row[0])


def reach(connection: Connection, name: str, position: int) -> None:
    """Record how far it is."""
    connection.execute(_REACH, (name, position))


def go_behind(connection: Connection, reader: str, first: int, until: int) -> bool:
    """Move a reader of the journal on behind *until*, from before *first*; False where it stands behind that already.

    Who writes what it counts in the same transaction counts once: also with another process that takes the same rows.
    """
    return connection.execute(_GO_BEHIND, (reader, until, first)).fetchone() is not None
