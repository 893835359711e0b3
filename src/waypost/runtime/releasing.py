"""Releasing: the timer of a worker, which looks for what is due and what may come back; and when it can rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from waypost.domain.breaker import BreakerState
from waypost.domain.notification import Lane
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.work import Work
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.gates import Gates
from waypost.runtime.leasing import LeaseLoop
from waypost.runtime.parked import ParkedWork
from waypost.runtime.ticker import Rest

CALM: Final = Rest(0.25)
"""The rest of a pulse while nothing is in hand: so late it begins to beat for what nobody wrote just now."""
REST_S: Final = 1.0
"""Seconds that a timer rests at most where nothing is written, nothing is due, and the clock is not set."""


class Releasing:
    """The timer of a worker."""

    def __init__(
        self,
        context: DeliveryContext,
        work: Work,
        parked: ParkedWork,
        loops: Sequence[LeaseLoop],
        quiet_until: Callable[[], Instant | None],
    ) -> None:
        """Create it; *quiet_until* tells before when a release finds nothing, if nothing is written until then."""
        self._context = context
        self._work = work
        self._parked = parked
        self._loops = loops
        self._quiet_until = quiet_until

    async def release(self) -> Rest | None:
        """Release what is due, and of what is parked as much as there is room for.

        Nothing but the work is waited for: where a log holds that, it is released while the store does not answer.
        """
        gates = self._context.gates
        lifted = await self._parked.lifted()
        released = await self._work.promote_due(self._context.clock.now(), self._context.timer.page, lifted)
        if released:
            self._wake_all()
        elif lifted and released is not None:
            self._parked.nothing_came(lifted)
        if await gates.release_rated(self._work, self._context.clock.now()):
            self._wake_all()
        for loop in self._loops:
            loop.look_again()
        return None if released or lifted else self.rest(REST_S)

    def rest(self, most_s: float) -> Rest | None:
        """Return the rest until something is due, *most_s* at most; None where something is going on."""
        until = self._quiet_until()
        if until is None or self._context.settler.is_full or not is_calm(self._context.gates):
            return None
        return Rest(min(most_s, (until - self._context.clock.now()) / SECOND_MS))

    def _wake_all(self) -> None:
        for loop in self._loops:
            loop.wake()


def is_calm(gates: Gates) -> bool:
    """Tell whether nothing is in flight, and nothing waits for a provider: for its limit, or its breaker."""
    return all(
        not gate.circuit.in_flight
        and gate.circuit.state is not BreakerState.OPEN
        and (gate.rate is None or not gate.rate.waiting.is_looked_for)
        and all(scope.state is not BreakerState.OPEN for scope in gates.open_scopes(credential))
        for credential, gate in gates.of(Lane.NORMAL).items()
    )
