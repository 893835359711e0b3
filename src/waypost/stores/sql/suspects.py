"""The search for what nobody moves, on SQL: the heads of each queue, and a page of what is routed and open.

    notification_fresh  (lane, app, seq)    the first rows of each queue: whoever is passed over stays there
    notification_due    (lane, due_at)      as a whole: scheduled, replayed
    receipt_due         (lane, due_at)      targets whose time is over by more than the threshold
    notification_open   (id)                routed, not final: a page each time, for those that nothing will touch

What the log holds (shards beyond SHARDS) is left to the log: its broker hands it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from waypost.domain.content import Urgency
from waypost.domain.delivery import Receipt
from waypost.domain.ids import SHARDS, NotificationId, first_id_at
from waypost.domain.notification import Lane
from waypost.domain.recovery import Standing, Stuck, Thresholds, stuck
from waypost.domain.time import Instant, later
from waypost.domain.turns import in_turns
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.lease import apps_with_fresh_rows
from waypost.stores.sql.rows import RECEIPT, receipt_of, select_in

WALK_PAGE: Final = 1_000
"""The rows of what is routed and open that one search looks at."""
FIRST: Final = NotificationId(b"")

_UNKNOWN = (
    " AND NOT EXISTS (SELECT 1 FROM suspect WHERE suspect.notification_id = {id})"
    " AND NOT EXISTS (SELECT 1 FROM alert WHERE alert.notification_id = {id} AND resolved_at IS NULL)"
)
_OF_ROW = f" AND +shard < {SHARDS}" + _UNKNOWN.format(id="notification.id")
_OF_RECEIPT = f" AND +shard < {SHARDS}" + _UNKNOWN.format(id="receipt.notification_id")
_FRESH = (
    "SELECT id FROM (SELECT id, created_at FROM notification INDEXED BY notification_fresh"  # noqa: S608 - conditions of ours
    f" WHERE lane = ? AND app = ? AND due_at = 0{_OF_ROW} ORDER BY seq LIMIT ?) AS heads WHERE created_at <= ?"
)
_WHOLE = (
    "SELECT id FROM notification INDEXED BY notification_due"  # noqa: S608 - conditions of ours
    f" WHERE lane = ? AND due_at > 0 AND due_at <= ?{_OF_ROW} ORDER BY due_at LIMIT ?"
)
_DUE = (
    "SELECT notification_id FROM receipt INDEXED BY receipt_due WHERE lane = ?"  # noqa: S608 - ours
    f" AND due_at IS NOT NULL AND due_at > 0 AND due_at <= ?{_OF_RECEIPT} ORDER BY due_at LIMIT ?"
)
_WALK = (
    "SELECT id, EXISTS (SELECT 1 FROM receipt WHERE notification_id = notification.id AND due_at > ?)"  # noqa: S608 - conditions of ours
    " FROM notification INDEXED BY notification_open"
    f" WHERE due_at IS NULL AND finished_at IS NULL AND id > ? AND id < ?{_OF_ROW} ORDER BY id LIMIT ?"
)
_STANDING = (
    "SELECT id, app, expires_at, created_at, scheduled_at, due_at, urgency, retry_policy FROM notification"
    " WHERE id IN ({keys}) AND finished_at IS NULL"
)
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id IN ({{keys}})"  # noqa: S608 - a list of columns
_URGENCIES = {word.value: word for word in Urgency}


def search(
    connection: Connection, thresholds: Thresholds, now: Instant, n: int, after: NotificationId
) -> tuple[list[Stuck], NotificationId]:
    """Find at most *n* suspects, queues taking turns, and say behind which id the next walk begins."""
    bound = later(now, -thresholds.processing_ms)
    walked = connection.execute(_WALK, (bound, after, first_id_at(bound), WALK_PAGE)).fetchall()
    unmoved = [row[0] for row in walked if not row[1]]
    ids = in_turns(n, [unmoved, *_heads(connection, thresholds, now, n)])
    found = [stuck(each, thresholds, now) for each in standing(connection, list(dict.fromkeys(ids)))]
    return [each for each in found if each is not None], walked[-1][0] if len(walked) == WALK_PAGE else FIRST


def _heads(connection: Connection, thresholds: Thresholds, now: Instant, n: int) -> Iterator[list[NotificationId]]:
    """Yield the first ids of each queue that are overdue."""
    pending, processing = later(now, -thresholds.pending_ms), later(now, -thresholds.processing_ms)
    for lane in Lane:
        for app in apps_with_fresh_rows(connection, lane):
            yield _ids(connection.execute(_FRESH, (lane, app, n, pending)).fetchall())
        yield _ids(connection.execute(_WHOLE, (lane, pending, n)).fetchall())
        yield _ids(connection.execute(_DUE, (lane, processing, n)).fetchall())


def _ids(rows: Sequence[Row]) -> list[NotificationId]:
    return [row[0] for row in rows]


def standing(connection: Connection, ids: Sequence[NotificationId]) -> list[Standing]:
    """Read how those of *ids* stand that are not final."""
    rows = list(select_in(connection, _STANDING, ids))
    receipts: dict[NotificationId, list[Receipt]] = {}
    for row in select_in(connection, _RECEIPTS, [row[0] for row in rows if row[5] is None]):
        receipts.setdefault(row[0], []).append(receipt_of(row))
    return [
        Standing(
            app,
            one,
            expires_at,
            created_at,
            scheduled_at,
            due_at,
            _URGENCIES.get(urgency, Urgency.NORMAL),
            policy,
            tuple(receipts.get(one, ())),
        )
        for one, app, expires_at, created_at, scheduled_at, due_at, urgency, policy in rows
    ]
