"""Accepting in memory: claims, record and queue entry of one item."""

from __future__ import annotations

from typing import assert_never

import msgspec

from tests.memory.steps import take
from tests.memory.store import LEASABLE, MemoryStore, StoredClaim, StoredRow
from waypost.domain.balance import Count, forgotten
from waypost.domain.content import Content
from waypost.domain.dedup import ENDED_BADLY, Claim, ClaimKind
from waypost.domain.ids import NotificationId
from waypost.domain.moves import Moved, NotificationMoved
from waypost.domain.replay import new_round
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate, NewNotification, NotReplayable, Replay


def accept(store: MemoryStore, item: NewNotification | Replay, now: Instant) -> tuple[Acceptance, list[Moved]]:
    """Store one item, seeing what the items before it stored."""
    match item:
        case Replay():
            return _replay(store, item)
        case NewNotification():
            return _arrive(store, item, now)
        case _:
            assert_never(item)


def _arrive(store: MemoryStore, arrival: NewNotification, now: Instant) -> tuple[Acceptance, list[Moved]]:
    known = store.rows.get(arrival.notification.id)
    store.tally(arrival.notification, [(Count.REQUESTS, 1)])
    if known is not None:
        store.tally(arrival.notification, [(Count.REPEATED, 1)])
        return _again(known), []
    for claim in sorted(arrival.claims, key=lambda claim: claim.kind is ClaimKind.CONTENT):
        claimed = store.claims.get((claim.kind, claim.key))
        if claimed is not None and claimed.claim.until > now and not _is_new_again(store, claim, claimed):
            return _said_before(store, arrival, claim, claimed, now)
    _claim(store, arrival.claims, arrival.notification.id, now)
    return Accepted(arrival.notification.id), _insert(store, arrival, None)


def _is_new_again(store: MemoryStore, claim: Claim, claimed: StoredClaim) -> bool:
    first = store.rows.get(claimed.first_id)
    return claim.kind is ClaimKind.CONTENT and first is not None and first.status in ENDED_BADLY


def _again(known: StoredRow) -> Acceptance:
    """Return the answer that the same arrival got the first time."""
    if known.duplicate_of is not None:
        return Duplicate(known.duplicate_of, known.notification.id)
    return Accepted(known.notification.id, new=False)


def _said_before(
    store: MemoryStore, arrival: NewNotification, claim: Claim, claimed: StoredClaim, now: Instant
) -> tuple[Acceptance, list[Moved]]:
    if claim.kind is ClaimKind.CONTENT:
        moves = _insert(store, arrival, claimed.first_id)
        _claim(store, tuple(each for each in arrival.claims if each is not claim), claimed.first_id, now)
        return Duplicate(claimed.first_id, arrival.notification.id), moves
    if claim.body_hash != claimed.claim.body_hash:
        store.tally(arrival.notification, [(Count.CONFLICTING, 1)])
        return Conflicting(claimed.first_id), []
    store.tally(arrival.notification, [(Count.REPEATED, 1)])
    return Duplicate(claimed.first_id), []


def _claim(store: MemoryStore, claims: tuple[Claim, ...], first_id: NotificationId, now: Instant) -> None:
    for claim in claims:
        if claim.until > now:
            store.claims[claim.kind, claim.key] = StoredClaim(claim, first_id)


def _insert(store: MemoryStore, arrival: NewNotification, duplicate_of: NotificationId | None) -> list[Moved]:
    notification = arrival.notification
    if duplicate_of is None:
        due_at = LEASABLE if notification.scheduled_at is None else notification.scheduled_at
        row = StoredRow(store.count(), notification, due_at)
        store.open[notification.id] = row
    else:
        small = msgspec.structs.replace(notification, content=Content())
        row = StoredRow(store.count(), small, None, NotificationStatus.DEDUPLICATED, duplicate_of=duplicate_of)
        row.finished_at = notification.created_at
    store.rows[notification.id] = row
    store.tally(notification, [(row.status, 1)] + ([(Count.ACCEPTED, 1)] if duplicate_of is None else []))
    at = notification.created_at
    return [NotificationMoved(notification.app, notification.id, notification.user_id, None, row.status, at)]


def _replay(store: MemoryStore, replay: Replay) -> tuple[Acceptance, list[Moved]]:
    row = store.rows.get(replay.notification_id)
    if row is None or row.notification.app != replay.app:
        return NotReplayable(known=False), []
    step = new_round(row.progress, replay.at, replay.taken)
    if step is None:
        return NotReplayable(known=True), []
    row.notification = msgspec.structs.replace(row.notification, expires_at=replay.expires_at)
    store.open[row.notification.id] = row
    if step.progress.receipts is None:
        store.tally(row.notification, forgotten(row.receipts.values()))
    moves = take(store, row, step, replay.at)
    row.due_at = LEASABLE if step.progress.receipts is None else None
    row.round += 1
    row.reason = row.finished_at = None
    return Accepted(row.notification.id), moves
