"""How notifications and deliveries end in memory, whoever ends them, and what the journal says of it."""

from __future__ import annotations

import msgspec

from waypost.adapters.memory.store import MemoryStore, Part, Row
from waypost.domain.delivery import Receipt
from waypost.domain.notification import Notification
from waypost.domain.settlement import Cancelled, Change, Forget, apply
from waypost.domain.status import DeliveryStatus, NotificationStatus, final_status
from waypost.domain.time import Instant
from waypost.ports.journal import DeliveryMoved, Moved, NotificationMoved


def close(store: MemoryStore, row: Row, now: Instant) -> list[Moved]:
    """Write the final status of a routed notification whose last open target is closed."""
    receipts = row.receipts.values()
    if row.is_final or row.due_at is not None or any(receipt.is_open for receipt in receipts):
        return []
    return finish(store, row, final_status(receipt.status for receipt in receipts), now)


def finish(store: MemoryStore, row: Row, status: NotificationStatus, now: Instant) -> list[Moved]:
    """Write a final status, once."""
    notification = row.notification
    reason = row.withdrawn if status is NotificationStatus.CANCELLED else None
    move = NotificationMoved(notification.app, notification.id, notification.user_id, row.status, status, now, reason)
    row.status, row.reason, row.finished_at, row.due_at = status, reason, now, None
    del store.open[notification.id]
    return [move]


def cancel_unheld(store: MemoryStore, row: Row, now: Instant) -> tuple[int, list[Moved]]:
    """End what no lease holds of a withdrawn notification; how many waiting targets that were."""
    why = row.withdrawn
    assert why is not None, "only a withdrawn notification is cancelled"
    if row.due_at is not None:
        held = store.is_held(Part(row.notification.id), now)
        return 0, [] if held else finish(store, row, NotificationStatus.CANCELLED, now)
    moves: list[Moved] = []
    for receipt in list(row.receipts.values()):
        part = Part(row.notification.id, receipt.n)
        if receipt.status is not DeliveryStatus.PENDING or store.is_held(part, now):
            continue
        cancelled = apply(receipt, Change(receipt.n, receipt.attempt + 1, Cancelled(why), now))
        assert cancelled is not None, "an open receipt takes its next attempt"
        row.receipts[receipt.n] = cancelled
        store.ready.pop(part, None)
        moves.append(moved(row.notification, receipt, cancelled, now))
    return len(moves), moves + close(store, row, now)


def moved(
    notification: Notification, before: Receipt, after: Receipt, at: Instant, change: Change | None = None
) -> DeliveryMoved:
    """The journal's word for a delivery's change; an intent was never more than pending."""
    settlement = None if change is None else change.settlement
    made = None if change is None else change.made
    return DeliveryMoved(
        notification.app,
        notification.id,
        notification.user_id,
        after.n,
        after.device_id,
        after.attempt,
        DeliveryStatus.PENDING if before.is_open else before.status,
        after.status,
        at,
        after.code,
        after.reason,
        settlement.since if isinstance(settlement, Forget) else None,
        None if made is None else made.token_hash,
        change is not None and change.is_use,
    )


def expired_intent(receipt: Receipt) -> Receipt:
    """An intent whose deadline went by without an outcome: unknown for good."""
    return msgspec.structs.replace(receipt, due_at=None, resolved_at=receipt.due_at, reason="unanswered")
