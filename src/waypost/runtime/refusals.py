"""Refusals: the devices that a provider refuses us for, and which of these refusals the other answers disprove."""

from __future__ import annotations

from enum import Enum, auto

from waypost.domain.outcome import CredentialRejected, Reach

REMEMBERED = 100
"""The most devices of each kind; the one that came first makes room."""


class Weight(Enum):
    """The conclusion from one refusal for the other devices."""

    ALL = auto()
    """The other devices are refused, too."""
    ONE_MORE = auto()
    """The other devices may be refused: it is another device than those refused before it."""
    NOTHING = auto()
    """The other devices are not concerned: it is the same device once more."""


class Refusals:
    """The refusals by one circuit's part of a provider."""

    def __init__(self) -> None:
        self._standing: dict[str, None] = {}
        """The tokens refused since anything was taken last."""
        self._belied: dict[str, None] = {}
        """The tokens refused while others were taken: they are refused for reasons of their own."""

    def weigh(self, denied: CredentialRejected, token: str) -> Weight:
        """Remember that we were refused for *token*, and return what that says of the others."""
        is_new = token not in self._standing
        _keep(self._standing, token)
        if denied.reach is not Reach.DEVICE and token not in self._belied:
            return Weight.ALL
        return Weight.ONE_MORE if is_new else Weight.NOTHING

    def taken(self, token: str) -> None:
        """Note that something for *token* was taken: the devices refused since the last time were meant themselves."""
        self._belied.pop(token, None)
        self._standing.pop(token, None)
        for refused in self._standing:
            _keep(self._belied, refused)
        self._standing.clear()


def _keep(tokens: dict[str, None], token: str) -> None:
    tokens[token] = None
    if len(tokens) > REMEMBERED:
        del tokens[next(iter(tokens))]
