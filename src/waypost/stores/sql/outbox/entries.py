"""Entries of the outbox: a row for each part that became leasable, in the transaction that made it so.

outbox   INSERT beside the accept, release or hand-over; UPDATE when it is claimed and published; dropped later
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.ports.work import NewNotification
from waypost.stores.sql.transaction import Transaction

WHOLE: Final = -1
"""The part of a notification that is all of it; others are numbers of targets."""
INSERT = "INSERT INTO outbox (notification_id, n, app, lane, added_at) VALUES "
VALUES = "(?, ?, ?, ?, ?)"


def write_arrivals(transaction: Transaction, arrivals: Sequence[NewNotification]) -> None:
    """Write the entries of what was just accepted, to be sent now."""
    made = (arrival.notification for arrival in arrivals)
    rows = [(one.id, WHOLE, one.app, one.lane._value_, transaction.now) for one in made]
    transaction.connection.insert_all(INSERT, VALUES, rows)
