"""A new round for a notification that has ended: which of its targets are sent again, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from waypost.domain.delivery import Receipt
from waypost.domain.moves import DeliveryMoved, Moved, NotificationMoved
from waypost.domain.progress import Progress, Step
from waypost.domain.settlement import opened
from waypost.domain.status import REPLAYABLE, DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.domain.waits import Wait, WaitsFor

_ROUTED_AGAIN = frozenset(
    {NotificationStatus.NO_TARGETS, NotificationStatus.EXPIRED, NotificationStatus.FAILED, NotificationStatus.UNKNOWN}
)
"""Final states that a replay routes anew where there are no targets to reopen."""
_TAKEN_TOO = REPLAYABLE | {DeliveryStatus.SENT}


def new_round(progress: Progress, at: Instant, taken: bool = False) -> Step | None:
    """Start a new round for what failed, expired or is unknown; None where nothing of it can be sent again.

    With *taken* also for what its provider took and nobody confirmed.
    What never had targets, or only the record of poison, is routed anew. All receipts must be loaded.
    """
    receipts = progress.receipts or {}
    routed_again = progress.status in _ROUTED_AGAIN and all(each.stands_for_all for each in receipts.values())
    known = [each for each in receipts.values() if not each.is_newer]
    failed = [] if routed_again else [each for each in known if each.status in (_TAKEN_TOO if taken else REPLAYABLE)]
    if not progress.is_final or not (failed or routed_again):
        return None
    reopened = _reopened(failed, at)
    after = None if routed_again else dict(receipts) | reopened
    pending = NotificationStatus.PENDING
    replayed = msgspec.structs.replace(progress, status=pending, receipts=after, withdrawn=None)
    moves: list[Moved] = [NotificationMoved(progress.app, progress.id, progress.user_id, progress.status, pending, at)]
    for each in failed:
        named = (progress.app, progress.id, progress.user_id, each.n, each.device_id, each.attempt)
        moves.append(DeliveryMoved(*named, each.status, DeliveryStatus.PENDING, at))
    return Step(progress, replayed, tuple(moves))


def _reopened(failed: Sequence[Receipt], at: Instant) -> dict[int, Receipt]:
    """Reopen failed receipts to send them again; what waited for one of them waits again, the others do not."""
    again = {each.n for each in failed}
    made: dict[int, Receipt] = {}
    for each in failed:
        waits = _again(each.waits, again)
        made[each.n] = msgspec.structs.replace(opened(each, at), waits=waits, due_at=None if waits else at)
    return made


def _again(wait: Wait | None, again: Collection[int]) -> WaitsFor | None:
    """Return what a reopened receipt waits for: of its siblings those that are sent *again*."""
    if not isinstance(wait, WaitsFor):
        return None
    siblings = tuple([n for n in wait.siblings if n in again])
    return msgspec.structs.replace(wait, siblings=siblings) if siblings else None
