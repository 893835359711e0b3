"""The changes of a store: whether anything was written since, by whomever."""

from __future__ import annotations

from typing import Protocol


class Changes(Protocol):
    """A number that moves on with what is written into the store, so that what has nothing to do can rest."""

    @property
    def version(self) -> int:
        """The number: another one once something was written since. Take it before you read."""
        ...

    async def look(self) -> None:
        """Find out whether others have written something; ``Unavailable`` where the store does not say."""
        ...

    def note(self) -> None:
        """Note that somebody said that they wrote something."""
        ...

    async def wait(self, seen: int) -> None:
        """Return once the number is another one than *seen*; somebody has to ``look`` meanwhile."""
        ...
