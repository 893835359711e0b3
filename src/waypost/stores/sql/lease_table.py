"""The work that this process has leased, or released but not leased yet: known to the owner of a shard alone.

A fresh notification is held whole; once its targets are stored, each open one is held for itself. Everything here
happens on the event loop, between its steps, so that it needs no lock.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from waypost.domain.amendment import LeasedTargets
from waypost.domain.delivery import OpenTarget
from waypost.domain.ids import AppId, NotificationId, shard_of
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Intent, Unstarted
from waypost.ports.work import Settled, WorkItem
from waypost.stores.sql.units import Leasing, unit_of


class _HeldTarget:
    """A target under a lease."""

    __slots__ = ("intent", "target", "token")

    def __init__(self, token: int, target: OpenTarget) -> None:
        self.token = token
        self.target = target
        self.intent = False
        """Whether it may be on the wire, at most once: never leasable again."""


class _Held:
    """The leased parts of one notification: the whole of it (by which lease) or some targets."""

    __slots__ = ("targets", "unit", "whole")

    def __init__(self, unit: int) -> None:
        self.unit = unit
        self.whole: int | None = None
        self.targets: dict[int, _HeldTarget] = {}


class LeaseTable:
    """The leased and released work of one process."""

    def __init__(self) -> None:
        self._held: dict[NotificationId, _Held] = {}
        self._queues: dict[Lane, dict[AppId, deque[WorkItem]]] = {lane: {} for lane in Lane}
        self._ready: dict[NotificationId, set[int | None]] = {}
        """The parts that wait in the queues: target numbers, or None for a notification whole."""
        self._blocked: Counter[NotificationId] = Counter()
        self._withdrawn: set[NotificationId] = set()
        self._from_tail: dict[Lane, set[NotificationId]] = {lane: set() for lane in Lane}
        self._touched: set[NotificationId] | None = None

    @contextmanager
    def watching(self) -> Iterator[set[NotificationId]]:
        """Tell, while a read is under way, what it is too old for: let go of, or with an amendment begun or ended."""
        self._touched = set()
        try:
            yield self._touched
        finally:
            self._touched = None

    def _touch(self, notification_id: NotificationId) -> None:
        if self._touched is not None:
            self._touched.add(notification_id)

    def is_taken(self, notification_id: NotificationId, n: int | None = None) -> bool:
        """Tell whether the notification (or its target *n*) is leased, waits to be, or is just being withdrawn."""
        if notification_id in self._blocked or n in self._ready.get(notification_id, ()):
            return True
        held = self._held.get(notification_id)
        return held is not None and (held.whole is not None or n in held.targets)

    def held_of(self, notification_id: NotificationId) -> LeasedTargets:
        """Tell whether the notification is leased whole, and else which of its targets are."""
        held = self._held.get(notification_id)
        return LeasedTargets() if held is None else LeasedTargets(held.whole is not None, frozenset(held.targets))

    def unit_of(self, notification_id: NotificationId) -> int | None:
        """Return the unit of a notification of which something is leased."""
        held = self._held.get(notification_id)
        return None if held is None else held.unit

    def busy_units(self) -> set[int]:
        """Return the units (units.py) of which something is leased."""
        return {held.unit for held in self._held.values()}

    # Released work

    def release(self, item: WorkItem, *, first: bool = False) -> None:
        """Make *item* leasable; *first* is for what was given back."""
        parts = _parts(item)
        self._ready.setdefault(item.notification.id, set()).update(parts)
        queue = self._queues[item.notification.lane].setdefault(item.notification.app, deque())
        if first:
            queue.appendleft(item)
        else:
            queue.append(item)

    def apps(self, lane: Lane) -> set[AppId]:
        """Return the apps with released work."""
        return {app for app, queue in self._queues[lane].items() if queue}

    def ready(self, lane: Lane) -> int:
        """Count the items of *lane* that are released."""
        return sum(map(len, self._queues[lane].values()))

    def ready_by_app(self, lane: Lane) -> dict[AppId, int]:
        """Count the same by app, for those that have any."""
        return {app: len(queue) for app, queue in self._queues[lane].items() if queue}

    def ready_beside(self, lane: Lane) -> int:
        """Count the same, less the fresh rows that are here: what to add to a count of those."""
        return self.ready(lane) - len(self._from_tail[lane])

    def take(self, lane: Lane, app: AppId, n: int, token: int) -> list[WorkItem]:
        """Lease at most *n* released items of an app; what was settled or withdrawn meanwhile has left the queue."""
        queue = self._queues[lane].get(app, deque())
        taken: list[WorkItem] = []
        while queue and len(taken) < n:
            item = self._still_ready(queue.popleft())
            if item is not None:
                self.hold(item, shard_of(item.notification.app, item.notification.user_id), token)
                taken.append(item)
        return taken

    def _still_ready(self, item: WorkItem) -> WorkItem | None:
        notification_id = item.notification.id
        ready = set() if notification_id in self._blocked else self._ready.get(notification_id, set())
        if item.open_targets is None:
            left: WorkItem | None = item if None in ready else None
        else:
            targets = tuple(target for target in item.open_targets if target.n in ready)
            left = WorkItem(item.notification, targets, siblings=item.siblings) if targets else None
        ready.difference_update(_parts(item))
        if not ready:
            self._ready.pop(notification_id, None)
        return left

    def drop_ready(self, keep: Leasing) -> None:
        """Forget released work of all shards but *keep*: their owner releases it again."""
        for queues in self._queues.values():
            for app, queue in queues.items():
                queues[app] = deque(item for item in queue if self._kept(item, keep))

    def _kept(self, item: WorkItem, keep: Leasing) -> bool:
        notification = item.notification
        if shard_of(notification.app, notification.user_id) in keep.of(notification.lane):
            return True
        self._ready.pop(item.notification.id, None)
        self._from_tail[item.notification.lane].discard(item.notification.id)
        return False

    # Leases

    def hold_fresh(self, item: WorkItem, shard: int, token: int) -> None:
        """Lease a fresh row under *token*."""
        self._from_tail[item.notification.lane].add(item.notification.id)
        self.hold(item, shard, token)

    def hold(self, item: WorkItem, shard: int, token: int) -> None:
        """Lease *item* under *token*."""
        held = self._held.get(item.notification.id)
        if held is None:
            held = self._held[item.notification.id] = _Held(unit_of(item.notification.lane, shard))
        if item.open_targets is None:
            held.whole = token
        else:
            held.targets.update((target.n, _HeldTarget(token, target)) for target in item.open_targets)

    def settled(self, token: int, settled: Settled, *, withdrawn: bool, refused: Collection[int] = ()) -> None:
        """Let go of what was settled under lease *token*; the rest of the item stays held, or is given back.

        *refused* are the targets whose change was stale: nobody goes on with those.
        """
        notification = settled.notification
        self._touch(notification.id)
        held = self._held.get(notification.id)
        is_over = held is not None and held.whole == token and settled.is_plain
        ready = self._ready.get(notification.id)
        if ready:  # an outcome of what was given back before: it is not sent once more
            ready.difference_update(change.n for change in settled.changes)
        if held is None:
            return
        if is_over:
            held.whole = None
            self._from_tail[notification.lane].discard(notification.id)
        elif settled.targets is not None and held.whole is not None:
            _hold_targets(held, held.whole, settled)
        if not is_over or held.targets:
            self._release_rest(held, token, settled, refused, withdrawn=withdrawn)
        if held.whole is None and not held.targets:
            del self._held[notification.id]
            self._withdrawn.discard(notification.id)

    def _release_rest(
        self, held: _Held, token: int, settled: Settled, refused: Collection[int], *, withdrawn: bool
    ) -> None:
        """Release the targets settled; what was not started, and what was given back, can be leased again."""
        notification = settled.notification
        back = list(_let_go(held, token, settled, refused))
        if settled.verdict is not None and held.whole == token:
            held.whole = None
        if held.whole is None:  # what is given back whole stays a fresh row
            self._from_tail[notification.lane].discard(notification.id)
        if settled.given_back:
            self._give_back_whole(notification, held, token, withdrawn=withdrawn)
            back += _give_back(held, token)
        if back and not withdrawn:
            self.release(WorkItem(notification, tuple(sorted(back, key=_number))), first=True)

    def _give_back_whole(self, notification: Notification, held: _Held, token: int, *, withdrawn: bool) -> None:
        """Make what was not routed yet leasable again, unless it was withdrawn."""
        if held.whole != token:
            return
        held.whole = None
        if withdrawn:
            self._from_tail[notification.lane].discard(notification.id)
        else:
            self.release(WorkItem(notification, None), first=True)

    # Withdrawals

    def block(self, notification_id: NotificationId) -> bool:
        """Keep it from being leased while its amendment is written; what was released of it is forgotten.

        True where that was the whole of it, which no release finds again.
        """
        was_ready_whole = None in self._ready.get(notification_id, ())
        self._blocked[notification_id] += 1
        self._touch(notification_id)
        self.forget_ready(notification_id)
        return was_ready_whole

    def forget_ready(self, notification_id: NotificationId) -> None:
        """Forget what was released of it: it is not leased."""
        self._ready.pop(notification_id, None)
        if notification_id not in self._held:
            for fresh in self._from_tail.values():
                fresh.discard(notification_id)

    def unblock(self, notification_id: NotificationId) -> None:
        """Unblock it, its amendment written or failed; a read that began before may still show it as it was."""
        self._touch(notification_id)
        self._blocked[notification_id] -= 1
        if not self._blocked[notification_id]:
            del self._blocked[notification_id]

    def note_withdrawn(self, notification_id: NotificationId) -> bool:
        """Note that it is leased and withdrawn: what comes back is closed. False where it is not leased any more."""
        if notification_id not in self._held:
            return False
        self._withdrawn.add(notification_id)
        return True

    def is_withdrawn(self, notification: Notification) -> bool:
        """Tell whether it is leased and withdrawn."""
        return notification.id in self._withdrawn


def _parts(item: WorkItem) -> list[int | None]:
    return [None] if item.open_targets is None else [target.n for target in item.open_targets]


def _hold_targets(held: _Held, token: int, settled: Settled) -> None:
    """Hold each target that can be sent to, for whoever held the whole: the first write stored the list."""
    held.whole = None
    for target in settled.targets or ():
        if target.channel is not None and target.suppressed is None and target.waits is None:
            held.targets[target.n] = _HeldTarget(token, OpenTarget(target.n, target.device_id, target.channel, 0))


def _let_go(held: _Held, token: int, settled: Settled, refused: Collection[int]) -> Iterator[OpenTarget]:
    """Release the targets settled, yielding those that were not started."""
    for change in settled.changes:
        mine = held.targets.get(change.n)
        if mine is None or mine.token != token:
            continue
        if isinstance(change.settlement, Intent) and change.n not in refused:
            mine.intent = True
            continue
        del held.targets[change.n]
        if isinstance(change.settlement, Unstarted) and not mine.intent:
            yield mine.target


def _give_back(held: _Held, token: int) -> Iterator[OpenTarget]:
    """Release all that lease *token* holds, yielding what may be sent again."""
    for mine in [mine for mine in held.targets.values() if mine.token == token]:
        del held.targets[mine.target.n]
        if not mine.intent:
            yield mine.target


def _number(target: OpenTarget) -> int:
    return target.n
