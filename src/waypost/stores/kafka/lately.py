"""A memory of two generations: the older one is forgotten when the younger one is of age."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")


class Lately(Generic[Key]):
    """A memory of texts by keys, each kept for *keep_ms* after it was noted, and forgotten after twice that at most.

    Time is that of the notes: where nothing is noted, nothing grows.
    """

    def __init__(self, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._young: dict[Key, str] = {}
        self._old: dict[Key, str] = {}
        self._since_ms: int | None = None
        """The time of the younger generation's first note."""

    def note(self, key: Key, text: str, at_ms: int) -> None:
        """Remember *text* under a key."""
        if self._since_ms is None:
            self._since_ms = at_ms
        if at_ms - self._since_ms >= self._keep_ms:
            self._old, self._young, self._since_ms = self._young, {}, at_ms
        self._young[key] = text

    def get(self, key: Key) -> str | None:
        """Return the text noted last, if it is remembered."""
        found = self._young.get(key)
        return found if found is not None else self._old.get(key)

    def __contains__(self, key: Key) -> bool:
        return key in self._young or key in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
