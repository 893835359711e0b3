"""The conditions under which the store holds something, and their release where no gate lifts one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import nsmallest
from typing import Final

from waypost.domain.turns import turn_after
from waypost.ports.work import Work
from waypost.runtime.gates import Gates

PAGE: Final = 100
"""The number that comes back at once of what waits under a condition that no gate has."""

CONDITIONS_A_TURN: Final = 50
"""The most conditions that one release asks the store for, a search each; the next ones in the next."""


class ParkedWork:
    """The conditions that exist in the store: each that no gate lifts is lifted here.

    Gates make the names of conditions from channels, lanes and rates. Once a rate is lifted, a channel or an app is
    taken out, or another version changes a name, what was parked under the old one would wait until it expires.
    """

    def __init__(self, gates: Gates, work: Work, of_rules: Collection[str]) -> None:
        """Look after *work*; the conditions *of_rules* end at the time that their rule gave."""
        self._gates = gates
        self._work = work
        self._known: Final = frozenset(gates.conditions()).union(of_rules)
        self._lifted_by_none: frozenset[str] = frozenset()
        self._is_expected = True
        self._last = ""

    def expect(self) -> None:
        """Look at the store before the next release: others may have parked what comes back here."""
        self._is_expected = True

    async def lifted(self) -> dict[str, int]:
        """Return how many parked deliveries may come back under each condition; of many conditions, those in turn."""
        if self._is_expected:
            found = await self._work.conditions()
            self._is_expected = False
            self._gates.found_parked(found)
            self._lifted_by_none = found - self._known
        return self._in_turn(self._gates.lifted() | dict.fromkeys(self._lifted_by_none, PAGE))

    def nothing_came(self, lifted: dict[str, int]) -> None:
        """Note that the store has nothing of this worker's parked under these conditions."""
        self._gates.nothing_came(lifted)
        self._lifted_by_none -= lifted.keys()

    def _in_turn(self, lifted: Mapping[str, int]) -> dict[str, int]:
        if len(lifted) <= CONDITIONS_A_TURN:
            return dict(lifted)
        turn = nsmallest(CONDITIONS_A_TURN, lifted, key=turn_after(self._last))
        self._last = turn[-1]
        return {condition: lifted[condition] for condition in turn}
