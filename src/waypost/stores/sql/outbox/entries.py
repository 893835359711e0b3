"""Entries of the outbox: a row for each part that became leasable, in the transaction that made it so.

outbox   INSERT beside the accept, release or hand-over; UPDATE when it is claimed and published; dropped later

Where others are told of what waits, a part that is tried again later has one from its settle, too, with its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification
from waypost.stores.sql.transaction import Transaction

WHOLE: Final = -1
"""The part of a notification that is all of it; others are numbers of targets."""
INSERT = "INSERT INTO outbox (notification_id, n, app, lane, added_at) VALUES "
VALUES = "(?, ?, ?, ?, ?)"
_INSERT_WAITING = "INSERT INTO outbox (notification_id, n, app, lane, added_at, due_at) VALUES "
_VALUES_WAITING = "(?, ?, ?, ?, ?, ?)"


class Waiting(NamedTuple):
    """A part that is leasable at *due_at* and not before."""

    notification_id: NotificationId
    n: int
    app: AppId
    lane: Lane
    due_at: Instant


def write_arrivals(transaction: Transaction, arrivals: Sequence[NewNotification]) -> None:
    """Write the entries of what was just accepted, to be sent now."""
    made = (arrival.notification for arrival in arrivals)
    rows = [(one.id, WHOLE, one.app, one.lane._value_, transaction.now) for one in made]
    transaction.connection.insert_all(INSERT, VALUES, rows)


def write_scheduled(transaction: Transaction, arrivals: Sequence[NewNotification]) -> None:
    """Write the entries of what was just accepted, to be sent later."""
    made = (arrival.notification for arrival in arrivals)
    write_waiting(
        transaction,
        [Waiting(one.id, WHOLE, one.app, one.lane, one.scheduled_at) for one in made if one.scheduled_at is not None],
    )


def write_waiting(transaction: Transaction, waiting: Sequence[Waiting]) -> None:
    """Write the entries of what waits for its time."""
    rows = [(*each[:3], each.lane._value_, transaction.now, each.due_at) for each in waiting]
    transaction.connection.insert_all(_INSERT_WAITING, _VALUES_WAITING, rows)
