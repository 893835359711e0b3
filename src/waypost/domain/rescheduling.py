"""Rescheduling: a notification that waits for its time gets another one. Pure."""

from __future__ import annotations

from waypost.domain.amendment import LeasedTargets, NotOpen, Reschedule, Rescheduled, Rescheduling, TooLate
from waypost.domain.progress import Progress
from waypost.domain.time import Instant


def reschedule(
    progress: Progress, due_at: Instant | None, order: Reschedule, held: LeasedTargets, now: Instant
) -> Rescheduling:
    """Decide on another time for a notification that is due at *due_at* as a whole; TooLate from that time on."""
    if progress.is_final:
        return NotOpen(progress.status)
    is_waiting = progress.receipts is None and due_at is not None and due_at > now
    if not is_waiting or progress.withdrawn is not None or held.whole or held.targets:
        return TooLate(len(held.targets))
    return Rescheduled(Instant(max(order.at, now)))
