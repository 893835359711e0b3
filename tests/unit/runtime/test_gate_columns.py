"""A gate whose provider has parts that fail apart: asked and told of many at once, it ends as asked of each alone."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.adapters.deliveries import delivery, fresh_ids
from waypost.domain.breaker import BreakerRules
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.notification import Lane
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Reach,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)
from waypost.domain.time import Instant
from waypost.ports.sender import Capabilities
from waypost.runtime.circuits import Circuit
from waypost.runtime.concurrency import Handed
from waypost.runtime.gates import Gates
from waypost.runtime.scopes import PLACES
from waypost.telemetry import Silent

OUTCOMES: tuple[Outcome, ...] = (
    *[Taken("id")] * 6,
    Gone("gone"),
    Refused("no", "never"),
    CredentialRejected("denied", "this device", Reach.DEVICE),
    CredentialRejected("denied", "this part", Reach.SCOPE),
    CredentialRejected("denied", "everything", Reach.CREDENTIAL),
    Throttled("slow", 1_000, whole=True),
    Unanswered("timeout", "no answer"),
    Unreachable("away", "not there"),
)
ONE = delivery(Platform("web"), "0")
RULES = BreakerRules(failures_to_open=2, probe_after_s=3.0, ramp_start=2)

Slice = list[tuple[int, Outcome]]
"""The deliveries let in together: the part that each hangs on, and how it ends."""
Round = tuple[Slice, int]
"""A slice, and how many batches land after it."""


def slices(most_parts: int) -> st.SearchStrategy[list[Round]]:
    """Slices to a provider of so many parts at most."""
    of_one = st.tuples(st.integers(0, most_parts - 1), st.sampled_from(OUTCOMES))
    return st.lists(st.tuples(st.lists(of_one, max_size=10), st.integers(0, 4)), max_size=12)


class Provider:
    """A gate, and what was let in at it and has not landed."""

    def __init__(self, budget: int, *, in_columns: bool) -> None:
        web = ONE.credential
        able = Capabilities(web.channel, 1_000_000, 1_000, 4_096, lambda each: each.device.token, fails_apart=True)
        self._gates = Gates({web: able}, {Lane.NORMAL: budget}, RULES, Silent())
        self._gate = self._gates.of(Lane.NORMAL)[web]
        self._in_columns = in_columns
        self._handed: list[tuple[Circuit, Handed, list[tuple[Delivery, Outcome]]]] = []
        self.said: list[object] = []
        """The answer to each delivery: a condition, or none, and the rest that followed its end."""
        self.columns = 0

    def let_in(self, deliveries: list[Delivery], ends: dict[Any, Outcome], now_s: float) -> None:
        """Ask about *deliveries*, and hand over those that may go."""
        gate = self._gate
        parts = gate.parts_with_room(deliveries) if self._in_columns else None
        if parts is not None:
            self.columns += 1
            gate.admit_all(deliveries, parts)
            self.said += [None] * len(deliveries)
            admitted = deliveries
        else:
            asked = [(each, gate.admit(each)) for each in deliveries]
            self.said += [what for _, what in asked]
            admitted = [each for each, what in asked if what is None]
        for part, its in gate.by_part(admitted):
            handed = Handed(Instant(int(now_s * 1000)), now_s, len(its))
            part.concurrency.handed(handed)
            self._handed.append((part, handed, [(each, ends[each.id]) for each in its]))

    def land(self, batches: int, now_s: float) -> None:
        """Let the oldest of what is in flight end, as a lane does it."""
        for part, handed, left in self._handed[:batches]:
            handed.left = 0
            while left:
                many = 1
                if self._in_columns and self._gate.is_calm(part):
                    others = [n for n, (_, outcome) in enumerate(left) if not isinstance(outcome, Taken)]
                    many = min(others, default=len(left))
                if many > 1:
                    self._gate.taken([each for each, _ in left[:many]], part, handed, now_s)
                    self.said += [None] * many
                else:
                    many = 1
                    self.said.append(self._gate.done(*left[0], handed, now_s))
                del left[:many]
        del self._handed[:batches]
        self._gates.tick(now_s)

    def known(self) -> list[object]:
        """List what it has counted and learned."""
        scopes = self._gates._scopes[ONE.credential]
        circuits = [self._gate.circuit, *scopes._circuits.values()]
        scoped = {key: part.place for key, part in self._gate._scoped.items()}
        return [self._gate.room(), self._gate._in_flight, self._gate._landed_s, scoped, *map(_known_of, circuits)]


def _known_of(circuit: Circuit) -> tuple[object, ...]:
    counted = circuit.concurrency
    refused = None if circuit._refusals is None else vars(circuit._refusals)
    learned = circuit.scope, circuit.place, circuit._breaker, circuit.in_flight, circuit.ramp, circuit._throttled
    seen = msgspec.structs.astuple(counted._seen), counted.limit, counted._answered_s
    return *learned, str(refused), dict(counted._lanes), *seen


def compared(rounds: list[Round], budget: int) -> int:
    """Play *rounds* both ways; return how often everything went in columns."""
    one_by_one, in_columns = Provider(budget, in_columns=False), Provider(budget, in_columns=True)
    ids = iter(fresh_ids(sum(len(slice_) for slice_, _ in rounds) or 1))
    for n, (slice_, landing) in enumerate(rounds):
        deliveries = [
            msgspec.structs.replace(ONE, id=next(ids), address=msgspec.structs.replace(ONE.device, token=str(part)))
            for part, _ in slice_
        ]
        ends = {each.id: outcome for each, (_, outcome) in zip(deliveries, slice_, strict=True)}
        for provider in (one_by_one, in_columns):
            provider.let_in(deliveries, ends, float(n))
            provider.land(landing, n + 0.5)
        assert in_columns.said == one_by_one.said
        assert in_columns.known() == one_by_one.known()
    return in_columns.columns


@settings(max_examples=200)
@given(slices(3), st.integers(2, 30))
def test_few_parts(rounds: list[Round], budget: int) -> None:
    compared(rounds, budget)


@settings(max_examples=30)
@given(slices(len(PLACES) + 8), st.integers(2, 60))
def test_more_parts_than_there_are_places(rounds: list[Round], budget: int) -> None:
    everywhere: Round = [(part, OUTCOMES[0]) for part in range(len(PLACES) - 4)], len(PLACES)
    compared([everywhere, *rounds], 60)
    compared([everywhere, *rounds], budget)


def test_it_is_in_columns_where_all_is_well() -> None:
    well: Round = [(part % 3, OUTCOMES[0]) for part in range(9)], 3
    assert compared([well, well, well], 1_000) == 2
