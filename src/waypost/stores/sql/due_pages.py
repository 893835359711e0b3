"""The first page of what is due, of every lane and both tables in one statement: mostly there is no more.

    notification  (lane, due_at, shard) WHERE due_at > 0
    receipt       (lane, due_at, shard) WHERE due_at IS NOT NULL

A statement costs far more than the few rows that it finds here, since a thread that runs one gives the interpreter
away.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.lease import in_shards
from waypost.stores.sql.units import Leasing

FIRST: Final = 128
"""The rows of a first page: where there are fewer, that is all."""

_WHOLE = (
    "SELECT {place} AS place, due_at, shard, id, seq AS number FROM notification INDEXED BY notification_due"
    " WHERE lane = '{lane}' AND due_at > 0 AND due_at <= ?1 AND due_at >= ?2{shards}"
    " ORDER BY due_at, shard, seq LIMIT 0 + ?3"
)
_DUE = (
    "SELECT {place} AS place, due_at, shard, notification_id AS id, n AS number FROM receipt INDEXED BY receipt_due"
    " WHERE lane = '{lane}' AND due_at IS NOT NULL AND due_at <= ?1 AND due_at >= ?2{shards}"
    " ORDER BY due_at, shard, notification_id, n LIMIT 0 + ?3"
)
_LANES: Final = tuple(Lane)


FirstPages = Mapping[Lane, tuple[list[Row], list[Row]]]
"""The notifications (due_at, shard, seq, id) and the receipts (due_at, shard, notification_id, n) of each lane."""


def first_pages(connection: Connection, leasing: Leasing, now: Instant, since: Instant) -> FirstPages:
    """Read what is due of *leasing* from *since* to *now*, at most ``FIRST`` of each lane and table."""
    pages: dict[Lane, tuple[list[Row], list[Row]]] = {lane: ([], []) for lane in Lane}
    rows = connection.execute(_statement(leasing), (now, since, FIRST)).fetchall()
    for place, due_at, shard, notification_id, number in rows:
        whole, due = pages[_LANES[place >> 1]]
        if place & 1:
            due.append((due_at, shard, notification_id, number))
        else:
            whole.append((due_at, shard, number, notification_id))
    for whole, due in pages.values():
        whole.sort()  # each part of the statement is in order, but nothing says that all of it together is
        due.sort()
    return pages


@lru_cache(8)
def _statement(leasing: Leasing) -> str:
    """Build the statement of *leasing*; a place is twice the number of a lane, and one more for receipts."""
    parts = [
        sql.format(place=2 * number + kind, lane=lane, shards=in_shards(leasing.of(lane)))
        for number, lane in enumerate(_LANES)
        if leasing.of(lane)
        for kind, sql in enumerate((_WHOLE, _DUE))
    ]
    return " UNION ALL ".join(f"SELECT * FROM ({part}) AS page" for part in parts)  # noqa: S608 - statements of ours
