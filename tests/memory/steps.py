"""Steps of a notification's progress in memory: what they change of its row and of what is held."""

from __future__ import annotations

from tests.memory.store import LeasedPart, MemoryStore, StoredRow
from waypost.domain.amendment import LeasedTargets, Withdrawal
from waypost.domain.balance import delivery_changes
from waypost.domain.moves import Moved
from waypost.domain.progress import Step
from waypost.domain.settlement import Change, Intent, Unstarted, Unsure
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant


def take(store: MemoryStore, row: StoredRow, step: Step, now: Instant) -> list[Moved]:
    """Write what *step* says, and return the moves for the journal."""
    after = step.progress
    assert after.status is not None, "a step stores it"
    store.tally(row.notification, delivery_changes(step, step.changed))
    if after.status is not step.before.status:
        moved = [(after.status, 1)] if step.before.status is None else [(step.before.status, -1), (after.status, 1)]
        store.tally(row.notification, moved)
    row.receipts = dict(after.receipts or {})
    row.status, row.withdrawn = after.status, after.withdrawn
    if after.is_final or after.receipts is not None:
        row.due_at = None
    if step.finished:
        row.reason = row.withdrawn if row.status is NotificationStatus.CANCELLED else None
        row.finished_at = now
        del store.open[after.id]
    return list(step.moves)


def withdraw(store: MemoryStore, row: StoredRow, why: str | None, now: Instant) -> tuple[Withdrawal, list[Moved]]:
    """Withdraw what no lease holds; *why* None ends what came back of what was withdrawn before."""
    store.take_over(row, now)
    step, answer = row.progress.withdraw(why, held_of(store, row, now), now)
    forget_ready(store, step)
    return answer, take(store, row, step, now)


def held_of(store: MemoryStore, row: StoredRow, now: Instant) -> LeasedTargets:
    """List the targets that leases hold."""
    held = {part.n for part in store.held_parts(row, now)}
    return LeasedTargets(None in held, frozenset(n for n in held if n is not None))


def forget_ready(store: MemoryStore, step: Step) -> None:
    """Remove from the released targets those that *step* has ended."""
    for change in step.taken:
        store.ready.pop(LeasedPart(step.progress.id, change.n), None)


def let_go(store: MemoryStore, token: int, step: Step) -> None:
    """Release the targets that lease *token* settled; what was not begun is leasable again."""
    for change in step.taken:
        part = LeasedPart(step.progress.id, change.n)
        store.ready.pop(part, None)
        if isinstance(change.settlement, Intent):
            continue
        hold = store.holds.get(part)
        if hold is not None and hold.token == token:
            del store.holds[part]
        if isinstance(change.settlement, Unstarted):
            store.ready[part] = store.count()


def close_intents(store: MemoryStore, row: StoredRow, now: Instant) -> list[Moved]:
    """Close intents whose deadline went by without an outcome: unknown for good."""
    over = [
        Change(each.n, each.attempt, Unsure(each.code or "unanswered"), each.due_at)
        for each in row.receipts.values()
        if each.is_intent and each.due_at is not None and each.due_at <= now
        if not store.is_held(LeasedPart(row.notification.id, each.n), now)
    ]
    return take(store, row, row.progress.settle(over, now), now) if over else []
