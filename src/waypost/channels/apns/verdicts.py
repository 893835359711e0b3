"""The meaning of an answer for a token, given where else it was tried and how others like it fared. Pure."""

from __future__ import annotations

from msgspec import Struct

from waypost.channels.apns.errors import UNKNOWN_DEVICE, WRONG_TOPIC
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Reach, Refused, Throttled, Unreachable
from waypost.domain.time import MINUTE_MS

_SUSPECT = "too many tokens are unknown at once: the settings are suspect, so it is kept"


class Trial(Struct, frozen=True):
    """The way in which a delivery was tried."""

    turned: bool
    """Whether it was tried at one environment, which did not know the token, then at the other."""
    foreign: bool
    """Whether the last try was at the environment that is not the app's own."""
    suspect: bool
    """Whether so many tokens are unknown that none is forgotten for that."""


def judged(outcome: Outcome, trial: Trial) -> Outcome:
    """Derive the outcome of the delivery from that of its last request.

    A token is gone when both environments refuse it. That the environment which is not the app's own refuses the
    credential, or cannot be reached, is not said of the credential: the app's own may be well.
    """
    match outcome:
        case Refused(code=code) if code == UNKNOWN_DEVICE and trial.turned:
            return Refused(code, _SUSPECT) if trial.suspect else Gone(code)
        case Gone(code=code) if code in (UNKNOWN_DEVICE, WRONG_TOPIC) and trial.suspect:
            return Refused(code, _SUSPECT)
        case CredentialRejected(code=code) if trial.turned and trial.foreign:
            return Refused(UNKNOWN_DEVICE, f"{code} from the other environment: it cannot be asked about the token")
        case CredentialRejected(code, why) if trial.foreign:
            return CredentialRejected(code, f"{why}; asked the other environment", Reach.SCOPE)
        case Unreachable(code=code, wait_ms=wait_ms) if trial.foreign:
            return Throttled(code, max(wait_ms or 0, MINUTE_MS))
        case _:
            return outcome
