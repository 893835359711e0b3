"""What must hold of the store: the journal tells each move once and in order, and its sum is what the rows say."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tests.memory.store import MemoryStore, StoredRow
from tests.simulation.process import APP
from waypost.domain.bulk import JobState
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.moves import DeliveryMoved, Moved, NotificationMoved
from waypost.domain.status import (
    DELIVERY_TRANSITIONS,
    FINAL,
    NOTIFICATION_TRANSITIONS,
    REPLAYABLE,
    DeliveryStatus,
    NotificationStatus,
)
from waypost.domain.time import Instant
from waypost.ports.clock import Clock

if TYPE_CHECKING:
    from tests.simulation.world import World

_encoder = msgspec.msgpack.Encoder()
_SENT = frozenset({DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED})


class AuditedStore(MemoryStore):
    """A store whose journal is followed move by move."""

    def __init__(self, clock: Clock, fail: Callable[[str], None], new_round: Callable[[NotificationId], None]) -> None:
        super().__init__()
        self._clock = clock
        self.since: dict[tuple[NotificationId, int, DeliveryStatus], Instant] = {}
        """When each target came to each status."""
        self._fail = fail
        self._new_round = new_round
        self.notifications: dict[NotificationId, NotificationStatus] = {}
        self.deliveries: dict[tuple[NotificationId, int], DeliveryStatus] = {}
        self.moved = 0
        self.digest = hashlib.blake2b(digest_size=8)
        self.finished: Counter[NotificationId] = Counter()
        self.rounds: Counter[NotificationId] = Counter()

    def record(self, moves: Sequence[Moved]) -> None:
        """Follow the moves of one transaction."""
        super().record(moves)
        self.moved += bool(moves)
        self.digest.update(_encoder.encode(moves))
        for move in moves:
            if isinstance(move, NotificationMoved):
                self._follow(move, moves)
            else:
                self._follow_delivery(move)

    def _follow(self, move: NotificationMoved, beside: Sequence[Moved]) -> None:
        known = self.notifications.get(move.notification_id)
        if move.before is not known:
            self._fail(f"{_name(move)}: the journal goes on from {move.before}, and it was {known}")
        if known in FINAL and move.after is NotificationStatus.PENDING:
            self._begin_anew(move.notification_id, beside)
        elif known is not None and move.after not in NOTIFICATION_TRANSITIONS[known]:
            self._fail(f"{_name(move)}: from {known} to {move.after}")
        self.notifications[move.notification_id] = move.after
        if known not in FINAL and move.after in FINAL:
            self.finished[move.notification_id] += 1

    def _begin_anew(self, notification_id: NotificationId, beside: Sequence[Moved]) -> None:
        """Follow a replay; what is routed anew has other targets from now on."""
        self.rounds[notification_id] += 1
        self._new_round(notification_id)
        mine = [each for each in beside if isinstance(each, DeliveryMoved) and each.notification_id == notification_id]
        if not mine:
            for key in [key for key in self.deliveries if key[0] == notification_id]:
                del self.deliveries[key]

    def _follow_delivery(self, move: DeliveryMoved) -> None:
        key = (move.notification_id, move.n)
        known = self.deliveries.get(key, DeliveryStatus.PENDING)
        if move.before is not known:
            self._fail(f"{_name(move)}/{move.n}: the journal goes on from {move.before}, and it was {known}")
        is_replay = known in REPLAYABLE and move.after is DeliveryStatus.PENDING
        is_retry = known is move.after is DeliveryStatus.PENDING
        if not is_replay and not is_retry and move.after not in DELIVERY_TRANSITIONS[known]:
            self._fail(f"{_name(move)}/{move.n}: from {known} to {move.after}")
        self.deliveries[key] = move.after
        self.since[*key, move.after] = self._clock.now()


def _name(move: Moved) -> str:
    return format_id(move.notification_id)[-6:]


def settle_accounts(world: World) -> None:
    """Check at the end of a simulation that everything accepted is there, final, and as the journal says."""
    store = world.store
    for row in store.rows.values():
        _check_row(world, row)
    for key, told in world.keys.items():
        if told not in store.rows:
            world.fail(f"what was accepted under {key} is nowhere")
    if store.ready:
        world.fail(f"{len(store.ready)} targets are released and belong to nothing open")
    for told, row in store.rows.items():
        if told not in world.answered and row.job is None and row.duplicate_of is None:
            world.fail(f"{format_id(told)[-6:]} was accepted, and no caller ever heard of it")
    for job in store.jobs.values():
        recipients = sum(row.job == job.job.id for row in store.rows.values())
        if recipients > job.total or (job.state is JobState.FINISHED and recipients < job.total):
            world.fail(f"the bulk job is {job.state} with {recipients} of {job.total} recipients")
    if len(world.told_moves) != store.moved:
        world.fail(f"a reader was told {len(world.told_moves)} of {store.moved} rows of the journal")


def _check_row(world: World, row: StoredRow) -> None:
    store, lab, name = world.store, world.lab, format_id(row.notification.id)[-6:]
    folded = store.notifications.get(row.notification.id)
    if folded is not row.status:
        world.fail(f"{name} is {row.status}, and {folded} by the journal")
    if store.finished[row.notification.id] != store.rounds[row.notification.id] + 1 and row.duplicate_of is None:
        world.fail(f"{name} finished {store.finished[row.notification.id]} times")
    for n, receipt in row.receipts.items():
        by_journal = store.deliveries.get((row.notification.id, n), DeliveryStatus.PENDING)
        if by_journal is not receipt.status:
            world.fail(f"{name}/{n} is {receipt.status}, and {by_journal} by the journal")
        if receipt.status in _SENT and not lab.has_taken(row.notification.id, n, receipt.device_id):
            world.fail(f"{name}/{n} is {receipt.status}, and no provider took it")
        device = store.devices.get((APP, row.notification.user_id, receipt.device_id))
        if receipt.reason == "gone" and device is not None and device.active:
            world.fail(f"{name}/{n} found its token dead, and the device is kept")
