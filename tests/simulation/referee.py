"""The referee: who may send what, when, and what may come again; asked at every lease, settle and handover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tests.memory.store import LeasedPart
from tests.simulation.lab import NOTHING_TAKEN, Sent
from waypost.domain.address import name_of
from waypost.domain.delivery import Delivery, starts_before
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Guarantee
from waypost.domain.outcome import Unanswered
from waypost.domain.progress import Stale
from waypost.domain.waits import WaitsFor, can_reach, is_needless
from waypost.ports.work import Lease, Settled

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import World

HANDOVER_S: Final = 3.0
"""The seconds from a look at the lease to the handover at most: who stood still in between may send late."""


class LeaseSeen(Struct):
    """A lease as it was given: to whom, and when it was last known to hold."""

    process: Process
    ids: frozenset[NotificationId]
    at_s: float
    sure_s: float


class Referee:
    """The referee of one simulation."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leases: dict[int, LeaseSeen] = {}

    def saw(self, process: Process, name: str, given: tuple[Any, ...], answer: Any, at_s: float) -> None:
        """Look at what was asked of the store and answered."""
        if name == "lease":
            ids = frozenset([item.notification.id for item in answer.items])
            self._leases[answer.token] = LeaseSeen(process, ids, at_s, at_s)
            self._check_leased(answer)
        elif name == "extend" and answer:
            self._leases[given[0].token].sure_s = at_s

    def late(self, settled: Sequence[Settled]) -> list[Stale]:
        """List the changes that are about to be settled though somebody else settled their attempt first."""
        found: list[Stale] = []
        for each in settled:
            row = self._world.store.rows.get(each.notification.id)
            for change in each.changes:
                receipt = None if row is None else row.receipts.get(change.n)
                if receipt is None:
                    continue
                expected = receipt.attempt if receipt.is_intent else receipt.attempt + 1
                if not receipt.is_open or change.attempt != expected:
                    found.append(Stale(each.notification.id, change.n, change.attempt))
        return found

    def refused(self, process: Process, late: Sequence[Stale], stale: Sequence[Stale]) -> None:
        """Check that what came late was refused."""
        self._world.counts["late outcomes refused"] += len(late)
        for each in late:
            if each not in stale:
                name = f"{format_id(each.notification_id)[-6:]}/{each.n}"
                self._world.fail(f"attempt {each.attempt} of {name} was settled late by {process.name}")

    def _check_leased(self, lease: Lease) -> None:
        """Check that no fallback is leased that is not needed, or not yet."""
        now = self._world.clock.now()
        for item in lease.items:
            scheduled_at = item.notification.scheduled_at
            if scheduled_at is not None and now < scheduled_at:
                self._world.fail(f"{format_id(item.notification.id)[-6:]} is leased before its time")
            for target in item.open_targets or ():
                row = self._world.store.rows[item.notification.id]
                receipts = row.receipts
                if row.withdrawn is not None:
                    self._world.fail(f"{format_id(item.notification.id)[-6:]} is leased though it was withdrawn")
                wait = receipts[target.n].waits
                if not isinstance(wait, WaitsFor) or receipts[target.n].attempt:
                    continue
                siblings = [receipts[each] for each in wait.siblings]
                name = f"{format_id(item.notification.id)[-6:]}/{target.n}"
                told, due_at = item.notification.id, receipts[target.n].due_at or now
                since = self._world.store.since
                early = [each.status for each in siblings if since.get((told, each.n, each.status), now) < due_at]
                if is_needless(wait, early) and not self._was_in_hand(told):
                    self._world.fail(f"{name} is leased though it was needless before it was due")
                can = any(each.is_open or can_reach(wait, each.status) for each in siblings)
                if can and now < item.notification.created_at + wait.seconds * 1000:
                    self._world.fail(f"{name} is leased before its wait is over")

    def _was_in_hand(self, told: NotificationId) -> bool:
        """Tell whether a worker that was lost may have had it: what is in hand is not cancelled by a confirmation."""
        having = [each for each in self._leases.values() if told in each.ids]
        return any(each.process.is_dead or each.process.was_disturbed(each.at_s) for each in having)

    def arrived(self, process: Process, delivery: Delivery, *, took: bool) -> Sent:
        """Take a delivery in at its provider: it must be a lease's, and no repeat that nothing explains."""
        self._world.counts["sent"] += 1
        key = (delivery.id, name_of(delivery.address))
        seen = self._check_lease(process, delivery)
        leased_s = self._world.loop.now_s if seen is None else seen.at_s
        sent = Sent(process, delivery, self._world.loop.now_s, leased_s, took)
        before = self._world.lab.sent.setdefault(key, [])
        lost = {each.delivery.attempt for each in before if each.is_lost}
        for earlier in before:
            if not earlier.is_past:
                self._check_repeat(earlier, sent, is_lost=earlier.delivery.attempt in lost)
        before.append(sent)
        if took:
            self._world.lab.taken.add(key)
            self._world.taken(delivery)
        return sent

    def _check_lease(self, process: Process, delivery: Delivery) -> LeaseSeen | None:
        """Check that the sender holds a lease on what it sends, unless it stood still since it last made sure."""
        store, now = self._world.store, self._world.clock.now()
        held = store.holds.get(LeasedPart(delivery.id, delivery.n)) or store.holds.get(LeasedPart(delivery.id))
        seen = None if held is None else self._leases.get(held.token)
        is_mine = held is not None and seen is not None and seen.process is process and held.until > now
        row = store.rows.get(delivery.id)
        receipt = None if row is None else row.receipts.get(delivery.n)
        is_open = delivery.id in store.told if row is None else not row.is_final
        is_next = receipt is None or delivery.attempt == receipt.attempt + (not receipt.is_intent)
        is_late = now > starts_before(delivery.message, delivery.attempt) + 1_000
        lost = [each for each in self._world.lab.sent.get((delivery.id, name_of(delivery.address)), ()) if each.is_lost]
        if is_mine and ((is_open and is_next) or lost) and not is_late:
            return seen
        mine = [each.sure_s for each in self._leases.values() if each.process is process and delivery.id in each.ids]
        if not process.was_disturbed(max(self._world.loop.now_s - HANDOVER_S, *mine, 0.0)):
            facts = f"mine {is_mine}, open {is_open}, next {is_next}, late {is_late}"
            self._world.fail(f"{_name(delivery)} is sent by {process.name} without a right to: {facts}")
        return seen if is_mine else None

    def _check_repeat(self, earlier: Sent, sent: Sent, *, is_lost: bool) -> None:
        """Check what may follow an *earlier* attempt; the late outcome of a copy of it that *is_lost* may count."""
        if isinstance(earlier.answer, NOTHING_TAKEN):
            return
        again = f"{_name(sent.delivery)} is sent again"
        if sent.delivery.guarantee is Guarantee.AT_MOST_ONCE:
            self._world.fail(f"{again}, and at_most_once: it was answered {earlier.answer}")
        elif isinstance(earlier.answer, Unanswered):
            self._world.counts["repeated without an answer"] += 1
        elif is_lost:
            self._world.counts["repeated for a lost worker"] += 1
        else:
            self._world.fail(f"{again} by {sent.process.name}: {earlier.process.name} was well")


def _name(delivery: Delivery) -> str:
    return f"{format_id(delivery.id)[-6:]}/{delivery.n}"
