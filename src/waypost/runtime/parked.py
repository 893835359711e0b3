"""The conditions under which the store holds something, and their release where no gate lifts one."""

from __future__ import annotations

from typing import Final

from waypost.ports.work import Work
from waypost.runtime.gates import Gates

PAGE: Final = 100
"""The number that comes back at once of what waits under a condition that no gate has."""


class ParkedWork:
    """The conditions that exist in the store: each that no gate lifts is lifted here.

    Gates make the names of conditions from channels, lanes and rates. Once a rate is lifted, a channel or an app is
    taken out, or another version changes a name, what was parked under the old one would wait until it expires.
    """

    def __init__(self, gates: Gates, work: Work) -> None:
        self._gates = gates
        self._work = work
        self._lifted_by_gates: Final = frozenset(gates.conditions())
        self._lifted_by_none: frozenset[str] = frozenset()
        self._is_expected = True

    def expect(self) -> None:
        """Look at the store before the next release: others may have parked what comes back here."""
        self._is_expected = True

    async def lifted(self) -> dict[str, int]:
        """Return how many parked deliveries may come back under each condition."""
        if self._is_expected:
            found = await self._work.conditions()
            self._is_expected = False
            self._gates.found_parked(found)
            self._lifted_by_none = found - self._lifted_by_gates
        return self._gates.lifted() | dict.fromkeys(self._lifted_by_none, PAGE)

    def nothing_came(self, lifted: dict[str, int]) -> None:
        """Note that the store has nothing of this worker's parked under these conditions."""
        self._gates.nothing_came(lifted)
        self._lifted_by_none -= lifted.keys()
