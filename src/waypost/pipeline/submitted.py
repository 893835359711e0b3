"""Submitted: what became of a submission that a duty made for a feature."""

from __future__ import annotations

from msgspec import Struct

from waypost.domain.errors import InvalidRequest
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate


class Made(Struct, frozen=True):
    """The outcome of one submission."""

    id: bytes | None = None
    """The notification or job; None where nothing was made."""
    error: str | None = None


def made_of(answer: Acceptance | InvalidRequest) -> Made | None:
    """Return what became of a submission under a key of the duty's own; None where that is to be asked again."""
    match answer:
        case Accepted(new_id):
            return Made(new_id)
        case Duplicate(first_id) | Conflicting(first_id):
            return Made(first_id)
        case InvalidRequest():
            return Made(error=str(answer))
        case _:
            return None
