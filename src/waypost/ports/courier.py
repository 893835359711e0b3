"""Couriers: the shortest way to write a sender, one message at a time, with a plain answer where that is enough."""

from __future__ import annotations

import re
from typing import Final, Protocol

from msgspec import Struct

from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome, Refused, Taken, Unanswered
from waypost.ports.sender import Rendered

PROVIDER_ERROR: Final = "provider_error"
"""The code where there is none, or none that is one."""
_CODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_LONGEST: Final = 300
"""The most characters that are kept of what a provider says."""


class PlainError(Struct, frozen=True):
    """The reason why a message was not taken."""

    message: str
    """The reason for people; it stands in the receipt, so no token and no text of the message belongs here."""
    retryable: bool = False
    code: str = PROVIDER_ERROR
    """The provider's code, by which receipts are found: up to 64 letters, digits and ``_.:-``."""


class PlainAnswer(Struct, frozen=True):
    """The answer ``{success, error: {message, retryable}}`` (requirement S4-22); an outcome says more."""

    success: bool
    error: PlainError | None = None
    id: str = ""
    """The provider's name for the message, where it gives one."""


class Courier(Protocol):
    """A courier delivers one message and says what came of it; ``runtime.courier_sender`` makes a ``Sender`` of it."""

    async def start(self) -> None:
        """Read credentials. ConfigurationError names one that cannot be used; a provider that is away does not."""
        ...

    async def deliver(self, delivery: Delivery) -> Outcome | PlainAnswer:
        """Deliver one message; called for many at once, and cancelled at the end of the time that is allowed for it."""
        ...

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``deliver`` would send, without the token; what is larger than its limit is never delivered."""
        ...

    async def stop(self) -> None:
        """Close what ``start`` opened; nothing is delivered any more. Not called where ``start`` failed."""
        ...


def outcome_of_answer(answer: Outcome | PlainAnswer) -> Outcome:
    """Translate a plain answer: one that may be retried leaves open whether the provider has the message."""
    if not isinstance(answer, PlainAnswer):
        return answer
    if answer.success:
        return Taken(_storable(answer.id))
    error = answer.error or PlainError("no reason was given")
    code, why = error.code if _CODE.fullmatch(error.code) else PROVIDER_ERROR, _storable(error.message)
    return Unanswered(code, why) if error.retryable else Refused(code, why)


def _storable(text: str) -> str:
    """Return *text* as receipts can hold it, whatever a provider wrote."""
    return "".join(each if each.isprintable() else " " for each in text[:_LONGEST])
