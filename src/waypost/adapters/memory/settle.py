"""Settling in memory: what one part of a leased item became."""

from __future__ import annotations

import msgspec

from waypost.adapters.memory.close import close, finish, moved
from waypost.adapters.memory.store import LEASABLE, MemoryStore, Part, Row
from waypost.domain.delivery import Receipt, Target
from waypost.domain.ids import NotificationId
from waypost.domain.settlement import Again, Cancelled, Change, Intent, Parked, Unstarted, apply
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.journal import Moved, NotificationMoved
from waypost.ports.work import Settled, Stale


def settle(store: MemoryStore, token: int, settled: Settled, now: Instant) -> tuple[list[Moved], list[Stale]]:
    """Apply one item's changes; what lost its compare-and-set is returned."""
    moves: list[Moved] = []
    if settled.notification.id in store.told:
        if settled.given_back:
            store.holds.pop(Part(settled.notification.id), None)
            return [], []
        moves.append(_insert(store, settled.notification.id, now))
    row = store.open.get(settled.notification.id)
    if row is None:
        return [], [_stale(settled, change) for change in settled.changes]
    if settled.targets is not None and not row.receipts:
        moves += _store_targets(store, row, settled.targets, now)
    moved_on = _renumbered(row, settled.targets or ())
    stale = []
    for change in settled.changes:
        move = None if change.n in moved_on else _settle_target(store, token, row, change)
        if move is None:
            stale.append(_stale(settled, change))
        else:
            moves += move
    if settled.verdict is not None and not row.receipts:
        store.holds.pop(Part(settled.notification.id), None)
        moves += finish(store, row, settled.verdict, now)
    if settled.given_back:
        moves += _give_back(store, token, row, now)
    return moves + close(store, row, now), stale


def _insert(store: MemoryStore, notification_id: NotificationId, now: Instant) -> Moved:
    """Write the row of a bulk job's recipient, who had none until now."""
    told = store.told.pop(notification_id)
    row = store.rows[notification_id] = store.open[notification_id] = Row(
        store.count(), told.notification, LEASABLE, job=told.job
    )
    named = (told.notification.app, notification_id, told.notification.user_id)
    return NotificationMoved(*named, None, row.status, now)


def _store_targets(store: MemoryStore, row: Row, targets: tuple[Target, ...], now: Instant) -> list[Moved]:
    """Store the whole list; who held the notification holds each of its open targets from here on."""
    hold = store.holds.pop(Part(row.notification.id), None)
    row.due_at = None
    moves: list[Moved] = []
    for target in targets:
        key = (row.notification.id, target.n, target.device_id, target.channel)
        pending = Receipt(*key, DeliveryStatus.PENDING, due_at=now)
        row.receipts[target.n] = pending
        if target.suppressed is not None:
            closed = msgspec.structs.replace(
                pending, status=DeliveryStatus.SUPPRESSED, reason=target.suppressed, due_at=None, resolved_at=now
            )
            row.receipts[target.n] = closed
            moves.append(moved(row.notification, pending, closed, now))
        elif hold is not None:
            store.holds[Part(row.notification.id, target.n)] = hold
    return moves


def _renumbered(row: Row, targets: tuple[Target, ...]) -> set[int]:
    """The numbers that mean another device than the list that was stored first: their changes are stale."""
    stored = {n: receipt.device_id for n, receipt in row.receipts.items()}
    return {target.n for target in targets if stored.get(target.n) != target.device_id}


def _settle_target(store: MemoryStore, token: int, row: Row, change: Change) -> list[Moved] | None:
    before = row.receipts.get(change.n)
    if before is None:
        return None
    if row.withdrawn is not None and isinstance(change.settlement, Again | Parked | Unstarted):
        change = msgspec.structs.replace(change, settlement=Cancelled(row.withdrawn))
    after = apply(before, change)
    if after is None:
        return None
    row.receipts[change.n] = after
    part = Part(row.notification.id, change.n)
    store.ready.pop(part, None)
    if isinstance(change.settlement, Intent):
        return []
    hold = store.holds.get(part)
    if hold is not None and hold.token == token:
        del store.holds[part]
    if isinstance(change.settlement, Unstarted):
        store.ready[part] = store.count()
        return []
    if change.made is None and after.status is DeliveryStatus.PENDING:
        return []
    return [moved(row.notification, before, after, change.at, change)]


def _give_back(store: MemoryStore, token: int, row: Row, now: Instant) -> list[Moved]:
    """Let go of all that this lease holds of *row*."""
    mine = [part for part in store.held_parts(row, now) if store.holds[part].token == token]
    for part in mine:
        del store.holds[part]
        if part.n is None and row.withdrawn is not None:
            return finish(store, row, NotificationStatus.CANCELLED, now)
    moves: list[Moved] = []
    for receipt in [row.receipts[part.n] for part in mine if part.n is not None]:
        if receipt.is_intent:
            continue  # its bytes may have left: the deadline ends it
        change = Change(receipt.n, receipt.attempt + 1, Unstarted(), now)
        moves += _settle_target(store, token, row, change) or []
    return moves


def _stale(settled: Settled, change: Change) -> Stale:
    return Stale(settled.notification.id, change.n, change.attempt)
