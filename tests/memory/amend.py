"""Amending in memory: what one order changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from tests.memory.steps import forget_ready, held_of, take, withdraw
from tests.memory.store import MemoryStore
from waypost.domain.amendment import (
    Amended,
    Amendment,
    Collapse,
    Confirm,
    Recover,
    Recovered,
    Remedy,
    Reschedule,
    Rescheduled,
    SingleAmendment,
    Supersede,
    Withdraw,
    together,
    unknown_to,
)
from waypost.domain.ids import NotificationId, created_at
from waypost.domain.moves import Moved
from waypost.domain.recovery import recover
from waypost.domain.rescheduling import reschedule
from waypost.domain.time import Instant, later


def amend(store: MemoryStore, order: Amendment, now: Instant, moves: list[Moved]) -> Amended:
    """Carry out one order."""
    if isinstance(order, Supersede):
        return together([_amend(store, order.withdraws(each), now, moves) for each in _older(store, order)])
    return _amend(store, order, now, moves)


def _amend(store: MemoryStore, order: SingleAmendment, now: Instant, moves: list[Moved]) -> Amended:
    row = store.rows.get(order.id)
    if row is None or row.notification.app != order.app:
        return unknown_to(order)
    answer: Amended
    match order:
        case Withdraw():
            answer, made = withdraw(store, row, order.why, now)
        case Confirm():
            step, answer = row.progress.confirm(order, held_of(store, row, now), now)
            forget_ready(store, step)
            made = take(store, row, step, now)
        case Recover():
            step, answer = recover(row.progress, order, held_of(store, row, now), now)
            forget_ready(store, step)
            made = take(store, row, step, now)
            is_again = order.remedy is Remedy.AGAIN and isinstance(answer, Recovered)
            if is_again and step.progress.receipts is None and not step.progress.is_final:
                row.due_at = now
        case Reschedule():
            answer = reschedule(row.progress, row.due_at, order, held_of(store, row, now), now)
            made = []
            if isinstance(answer, Rescheduled):
                row.due_at = answer.at
                expires_at = later(answer.at, row.notification.ttl_ms)
                row.notification = replace(row.notification, scheduled_at=answer.at, expires_at=expires_at)
        case _:
            assert_never(order)
    moves += made
    return answer


def _older(store: MemoryStore, order: Supersede) -> Sequence[NotificationId]:
    """List the notifications that a supersession is about."""
    if not isinstance(order.of, Collapse):
        return [order.of]
    named = (order.app, order.of.user_id, order.of.key)
    older = (row.notification for row in store.open.values() if row.notification.id < order.by)
    due = (each for each in older if each.scheduled_at is None or each.scheduled_at <= created_at(order.by))
    return [each.id for each in due if (each.app, each.user_id, each.content.collapse_key) == named]
