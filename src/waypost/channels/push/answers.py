"""The words of the providers' error tables, and the outcome that each stands for."""

from __future__ import annotations

from enum import Enum, auto
from typing import assert_never

from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Reach, Refused, Throttled, Unanswered, Unreachable
from waypost.domain.time import Instant
from waypost.http2 import Answer, Unknown, Unsent


class Meaning(Enum):
    """The meaning of an answer for the delivery."""

    DEAD_TOKEN = auto()
    """The token, or the subscription, is dead: nothing will reach the device under it again."""
    REFUSED = auto()
    REFUSED_HERE = auto()
    """This message is refused for what our account may send: another account may take it."""
    DENIED = auto()
    """The credential is refused, whatever is sent with it."""
    DENIED_SCOPE = auto()
    """The credential is refused for this topic, or by this push service."""
    DENIED_DEVICE = auto()
    """The credential is refused, and nothing says that other devices would be."""
    THROTTLED = auto()
    THROTTLED_WHOLE = auto()
    """The provider wants fewer requests, perhaps of all that is sent with the credential."""
    NOT_TAKEN = auto()
    """The provider says that it did not process the request."""
    UNSURE = auto()
    """The provider may have processed it: a front server answers so, too, when it lost the one behind it."""


_REACHES = {
    Meaning.DENIED: Reach.CREDENTIAL,
    Meaning.DENIED_SCOPE: Reach.SCOPE,
    Meaning.DENIED_DEVICE: Reach.DEVICE,
}


def is_success(answer: Answer) -> bool:
    """Tell whether the status is any of success: what lies between us and a provider may change the documented one."""
    return 200 <= answer.status < 300


def outcome_of_meaning(
    meaning: Meaning, code: str, why: str, wait_ms: int | None, dead_since: Instant | None = None
) -> Outcome:
    """Build the outcome; *code* and *wait_ms* are the provider's own, *why* is what our table says of the code."""
    match meaning:
        case Meaning.DEAD_TOKEN:
            return Gone(code, dead_since)
        case Meaning.REFUSED:
            return Refused(code, why)
        case Meaning.REFUSED_HERE:
            return Refused(code, why, elsewhere=True)
        case Meaning.DENIED | Meaning.DENIED_SCOPE | Meaning.DENIED_DEVICE:
            return CredentialRejected(code, why, _REACHES[meaning])
        case Meaning.THROTTLED:
            return Throttled(code, wait_ms)
        case Meaning.THROTTLED_WHOLE:
            return Throttled(code, wait_ms, whole=True)
        case Meaning.NOT_TAKEN:
            return Unreachable(code, why, wait_ms)
        case Meaning.UNSURE:
            return Unanswered(code, why, wait_ms)
        case _:
            assert_never(meaning)


def outcome_without_answer(result: Unsent | Unknown) -> Outcome:
    """Build the outcome of a request without an answer: nothing was written, or something was."""
    match result:
        case Unsent(reason):
            return Unreachable("not_sent", reason)
        case Unknown(reason, kind):
            return Unanswered(kind.value, reason)
        case _:
            assert_never(result)
