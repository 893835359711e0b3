"""The pulse: it moves breakers and limits on, and notices when the process itself stood still."""

from __future__ import annotations

from waypost.ports.clock import Clock
from waypost.runtime.gates import Gates
from waypost.runtime.releasing import CALM, is_calm
from waypost.runtime.ticker import Rest

STALLED_S = 0.25
"""Seconds of lateness from which a beat tells that the process did not run: it was stopped, or had no CPU."""


class Pulse:
    """A ticker of a process's gates, *every_s*; the time in which it stood still is not the providers'."""

    def __init__(self, gates: Gates, clock: Clock, every_s: float) -> None:
        self._gates = gates
        self._clock = clock
        self._every_s = every_s
        self._due_s = clock.monotonic() + every_s

    def beat(self) -> Rest | None:
        """Move breakers and limits on; rest where there is nothing to move."""
        now_s = self._clock.monotonic()
        stalled_s = now_s - self._due_s
        self._gates.tick(now_s, stalled_s if stalled_s > STALLED_S else 0.0)
        rest = CALM if is_calm(self._gates) else None
        self._due_s = now_s + (self._every_s if rest is None else max(rest.longest_s, self._every_s))
        return rest
