"""A lane's gate: how many deliveries it may have in flight with one credential, behind its breakers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from waypost.domain.breaker import Rest
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.fallback import Standing
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Reach, Refused, Taken, Unanswered
from waypost.pipeline.deliver import Pause
from waypost.runtime.circuits import Circuit
from waypost.runtime.concurrency import Handed
from waypost.runtime.rates import Key, RateGate
from waypost.runtime.scopes import Scopes

SOON_S = 0.25
"""A full gate is waited for so long at most, and only where something of it landed as recently."""

HARDLY = 0.05
"""The deliveries of an item for a credential below which a lane hardly uses it."""


Parts = Mapping[Circuit, Sequence[Delivery]]
"""Deliveries by the part of their provider that they hang on; empty where parts do not fail apart."""


class LaneGate:
    """The budget of one lane with one credential (fulfils pipeline.deliver.Gate)."""

    def __init__(
        self,
        lane: Lane,
        credential: CredentialId,
        circuit: Circuit,
        budget: int,
        scopes: Scopes | None,
        rate: RateGate | None,
        *,
        fails_apart: bool,
    ) -> None:
        """Create the gate; *budget* is the most that the lane may have in flight, less while answers take long."""
        self.condition = f"room:{lane}/{credential}"
        self.circuit = circuit
        self.rate = rate
        self._over: Mapping[Key, str | Pause] = {}
        """The condition or pause of each delivery that is over the limits, of those being let in."""
        self._lane = lane
        self._scopes = scopes
        self._scoped: dict[tuple[NotificationId, int], Circuit] = {}
        """The scope's circuit of each delivery in flight: which scope it hangs on may be known better when it lands."""
        self._apart = fails_apart
        self._budget = budget
        self._in_flight = 0
        self._landed_s = 0.0
        self._per_item = 1.0

    @property
    def _limit(self) -> int:
        """How many of the lane may be in flight now; parts that fail apart have their own limits beneath."""
        return self._budget if self._apart else self.circuit.concurrency.most(self._lane)

    def room(self) -> int:
        """Return how many more deliveries may go."""
        return max(0, min(self._limit - self._in_flight, self.circuit.room()))

    def standing(self, delivery: Delivery, credential: CredentialId) -> Standing:
        """Return how its breakers, those of *credential*, stand to *delivery*."""
        scope = self._scopes.of(delivery) if self._scopes is not None and self._scopes.are_watched else None
        part = self.circuit if scope is None or self.circuit.room() <= 0 else scope
        return Standing(credential, part.room(), part.is_denied)

    def room_for_items(self) -> int:
        """Return how many items may be leased so that their deliveries will probably find room here."""
        room = self.room()
        return int(room / self._per_item) or min(1, room)

    async def ask(self, rate: RateGate, deliveries: Sequence[tuple[Delivery, bool]]) -> None:
        """Ask the limits about what is let in next; with each comes whether it is new."""
        room = min(_with_slack(self._limit) - self._in_flight, self.circuit.room())
        self._over = await rate.over(self._lane, deliveries, room, self.condition)

    def heed(self, deliveries: int, items: int) -> None:
        """Learn how many deliveries come of an item: the mean over the last few batches."""
        self._per_item += (max(deliveries / items, 0.01) - self._per_item) / 8

    @property
    def is_tight(self) -> bool:
        """Whether it is about full."""
        limit = self._limit
        return min(limit - self._in_flight, self.circuit.room()) < max(1, limit // 8)

    def is_moving(self, now_s: float) -> bool:
        """Tell whether a delivery has just landed: then there will be room in a moment."""
        return now_s - self._landed_s < SOON_S

    @property
    def is_queued(self) -> bool:
        """Whether its provider is at its limit: what there is no room for waits for the provider, not for us."""
        return self.circuit.concurrency.is_queued

    @property
    def is_used(self) -> bool:
        """Whether the lane has something for it."""
        return self._per_item > HARDLY

    def by_part(self, admitted: Sequence[Delivery]) -> Iterable[tuple[Circuit, Sequence[Delivery]]]:
        """Divide what was *admitted* by the part of the provider that it goes to: each is slow or quick as one."""
        if not self._apart:
            return [(self.circuit, admitted)] if admitted else []
        parts: dict[Circuit, list[Delivery]] = {}
        for delivery in admitted:
            parts.setdefault(self._scoped[delivery.id, delivery.n], []).append(delivery)
        return parts.items()

    def _part(self, scope: Circuit | None) -> Circuit:
        return scope if self._apart and scope is not None else self.circuit

    def parts_with_room(self, deliveries: Sequence[Delivery]) -> Parts | None:
        """Divide *deliveries* by the parts that fail apart, if ``admit`` would let each of them in; else None."""
        is_well = not self._over and self.circuit.is_well
        if not is_well or self._in_flight + len(deliveries) > _with_slack(self._limit):
            return None
        if self._scopes is None or not self._scopes.are_watched:
            return {}
        parts = self._scopes.known(deliveries) if self._apart else None
        if parts is None or not all(
            part.is_well and len(its) <= part.concurrency.room(self._lane) for part, its in parts.items()
        ):
            return None
        return parts

    def admit_all(self, deliveries: Sequence[Delivery], parts: Parts) -> None:
        """Take the places of *deliveries*; *parts* are what ``parts_with_room`` just said of them."""
        n = len(deliveries)
        if not self._apart:
            self.circuit.concurrency.take(self._lane, n)
        for part, its in parts.items():
            part.in_flight += len(its)
            part.concurrency.take(self._lane, len(its))
            self._scoped.update([((each.id, each.n), part) for each in its])
        if self._scopes is not None:
            self._scopes.used(parts)
        self._in_flight += n
        self.circuit.in_flight += n

    def admit(self, delivery: Delivery) -> str | Pause | None:
        """Take a place, or say what to wait for; a batch may overshoot the limit by a quarter."""
        if self.circuit.room() <= 0:
            return self.circuit.condition
        if self._in_flight >= _with_slack(self._limit):
            return self.condition
        scope = self._scopes.of(delivery) if self._scopes is not None and self._scopes.are_watched else None
        if scope is not None and not scope.has_room(self._lane):
            return scope.condition
        if self.rate is not None and (over := self._over.get((delivery.id, delivery.n))) is not None:
            return over
        if scope is not None:
            scope.in_flight += 1
            self._scoped[delivery.id, delivery.n] = scope
        self._part(scope).concurrency.take(self._lane)
        self._in_flight += 1
        self.circuit.in_flight += 1
        return None

    def is_calm(self, part: Circuit) -> bool:
        """Tell whether of a delivery to *part* that was taken there is nothing to learn but that it landed."""
        if not self._apart:
            return not self._scoped and self.circuit.is_calm
        return self.circuit.is_calm and part.is_calm

    def taken(self, deliveries: Sequence[Delivery], part: Circuit, batch: Handed, now_s: float) -> None:
        """Give the places of *deliveries* to *part* back that were taken while it ``is_calm``."""
        n = len(deliveries)
        self._in_flight -= n
        self._landed_s = now_s
        self.circuit.left(n)
        if self._apart:
            part.left(n)
            for each in deliveries:
                del self._scoped[each.id, each.n]
        part.concurrency.give_back(self._lane, n)
        part.concurrency.answered(n, batch, now_s)

    def done(self, delivery: Delivery, outcome: Outcome, batch: Handed, now_s: float) -> Rest | None:
        """Give the place back and learn from the outcome; return the rest that follows where a breaker is open."""
        self._in_flight -= 1
        self._landed_s = now_s
        scope = self._scoped.pop((delivery.id, delivery.n), None) if self._scoped else None
        concurrency = self._part(scope).concurrency
        concurrency.give_back(self._lane)
        concurrency.landed(outcome, batch, now_s)
        token = delivery.address.token
        is_past = isinstance(outcome, Unanswered) and concurrency.is_past(batch)
        if scope is None:
            if self._scopes is None or not isinstance(outcome, CredentialRejected) or outcome.reach is Reach.CREDENTIAL:
                return self.circuit.done(outcome, now_s, self._budget, token, is_past=is_past)
            scope = self._scopes.of(delivery)
        match outcome:
            case Taken() | Gone() | Refused():  # good news of the credential and of its scope
                self.circuit.done(outcome, now_s, self._budget, token)
                concerned = scope
            case CredentialRejected(reach=reach):
                concerned = self.circuit if reach is Reach.CREDENTIAL else scope
                (scope if concerned is self.circuit else self.circuit).left()
            case _:
                concerned = scope if self._apart else self.circuit
                (self.circuit if self._apart else scope).left()
        return concerned.done(outcome, now_s, self._budget, token, is_past=is_past)

    def forfeit(self, delivery: Delivery) -> None:
        """Give the place back untried."""
        self._in_flight -= 1
        self.circuit.left()
        scope = self._scoped.pop((delivery.id, delivery.n), None)
        self._part(scope).concurrency.give_back(self._lane)
        if scope is not None:
            scope.left()


def _with_slack(limit: int) -> int:
    return limit + max(1, limit // 4)
