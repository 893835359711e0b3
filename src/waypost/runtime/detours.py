"""Detours: the deliveries of a lane that go out with another credential of their channel than the first."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from waypost.domain.breaker import Rest
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, FailureClass
from waypost.domain.fallback import Detour, Fallbacks, Next, Standing, detour, is_for_nobody, way
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Outcome, Refused, Taken
from waypost.domain.retry import ErrorClass, Exhausted, RetryRules
from waypost.domain.settlement import Change, Dead
from waypost.domain.time import Instant
from waypost.pipeline.route import Plan
from waypost.runtime.gates import Gates
from waypost.runtime.lane_gate import LaneGate

REMEMBERED = 10_000
"""The most deliveries whose refusals are known; one that is forgotten may be refused once more."""


def in_order(fallbacks: Fallbacks, gates: Gates, lane: Lane, delivery: Delivery) -> list[CredentialId]:
    """List the credentials that *delivery* would be tried with now, the one that is asked first before the others."""
    chain = fallbacks.chain(delivery.credential)
    first = way([gates.of(lane)[each].standing(delivery, each) for each in chain]) or delivery.credential
    return [first, *(each for each in chain if each != first)]


class Detours:
    """The choice of credentials of one lane, where an app has fallbacks or does not wait for an operator.

    Who refused a delivery is known in memory alone: another worker, or the next process, may ask that one again, who
    refuses it again; nothing is sent twice for that.
    """

    def __init__(
        self, fallbacks: Fallbacks, gates: Mapping[CredentialId, LaneGate], rules: Mapping[AppId, RetryRules]
    ) -> None:
        self._fallbacks = fallbacks
        self._gates = gates
        self._rules = rules
        self._refused: OrderedDict[tuple[NotificationId, int], frozenset[CredentialId]] = OrderedDict()
        """The credentials that refused each delivery although they take others, while it goes to the next."""

    @classmethod
    def of(
        cls, fallbacks: Fallbacks, gates: Mapping[CredentialId, LaneGate], rules: Mapping[AppId, RetryRules]
    ) -> Detours | None:
        """Return the detours of a lane; None where no app asks for any."""
        return cls(fallbacks, gates, rules) if fallbacks.chains or fallbacks.failing else None

    def of_plans(self, plans: Sequence[Plan], now: Instant) -> list[Plan]:
        """Choose the credential of each delivery, and end those that no account takes."""
        given: Counter[CredentialId] = Counter()
        return [self._of_plan(plan, given, now) for plan in plans]

    def after(self, delivery: Delivery, outcome: Outcome, rest: Rest | None) -> Detour | None:
        """Say where *delivery* goes after *outcome*; *rest* is what the breaker says that is open after it."""
        if rest is None and isinstance(outcome, CredentialRejected | Refused):
            self._remember(delivery)
        found = None if isinstance(outcome, Taken) else self._detour(delivery, outcome, is_open=rest is not None)
        if self._refused and not isinstance(found, Next):
            self._refused.pop((delivery.id, delivery.n), None)
        return found

    def _detour(self, delivery: Delivery, outcome: Outcome, *, is_open: bool) -> Detour | None:
        fails = delivery.credential.app in self._fallbacks.failing
        return detour(outcome, self._standings(delivery, Counter()), is_open=is_open, fails=fails)

    def _of_plan(self, plan: Plan, given: Counter[CredentialId], now: Instant) -> Plan:
        going: list[Delivery] = []
        ended: list[Change] = []
        for delivery in plan.deliveries:
            standings = self._standings(delivery, given)
            chosen = way(standings)
            if chosen is None and is_for_nobody(standings, fails=delivery.credential.app in self._fallbacks.failing):
                ended.append(Change(delivery.n, delivery.attempt, self._refusal(delivery), now))
                continue
            given[chosen or delivery.credential] += 1
            going.append(delivery if chosen in (None, delivery.credential) else replace(delivery, credential=chosen))
        return replace(plan, deliveries=tuple(going), changes=(*plan.changes, *ended))

    def _standings(self, delivery: Delivery, given: Counter[CredentialId]) -> list[Standing]:
        """List how each credential stands to *delivery*, less the room that is *given* to others."""
        refused = self._refused.get((delivery.id, delivery.n), frozenset()) if self._refused else frozenset()
        found = []
        for credential in self._fallbacks.chain(delivery.credential):
            own = self._gates[credential].standing(delivery, credential)
            room = own.room - given[credential]
            found.append(replace(own, room=room, has_refused=credential in refused))
        return found

    def _remember(self, delivery: Delivery) -> None:
        key = (delivery.id, delivery.n)
        self._refused[key] = self._refused.get(key, frozenset()) | {delivery.credential}
        if len(self._refused) > REMEMBERED:
            self._refused.popitem(last=False)

    def _refusal(self, delivery: Delivery) -> Dead:
        """Return the end of a delivery that is not even tried."""
        rules = self._rules[delivery.credential.app]
        policy = rules.policy_for(delivery.retry_policy, delivery.message.urgency, ErrorClass.CREDENTIAL)
        code = self._gates[delivery.credential].circuit.opened_by
        why = "the account is refused; nothing was tried"
        return Dead(code, why, FailureClass.TERMINAL, letter=policy.on_exhausted is Exhausted.DLQ)
