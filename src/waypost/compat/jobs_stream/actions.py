"""What follows from the outcome of one token: the notifications service's own table, on the outcomes of the sender.

Requirements S0-14 to S0-18, table S0-T1. The sender is told to take INVALID_ARGUMENT and SENDER_ID_MISMATCH for dead
tokens, as that table does; then the codes come here as settlements.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from waypost.domain.settlement import (
    Again,
    Cancelled,
    Change,
    Dead,
    Expired,
    Forget,
    Intent,
    Parked,
    Sent,
    Settlement,
    Suppressed,
    Unstarted,
    Unsure,
)

THIRD_PARTY_AUTH = "THIRD_PARTY_AUTH_ERROR"
DENIED = "denied"
"""The word of an attempt that was refused for its credential."""
_NEVER_SENT = frozenset({"payload_too_large"})
"""The message is refused before FCM sees it: as it is, it will never be taken."""


class TokenAction(StrEnum):
    """A treatment of a token."""

    SENT = "sent"
    REMOVE = "remove"
    """The token's row is deleted; the device failed."""
    FATAL = "fatal"
    """An operator must act; the device failed."""
    FAILED = "failed"
    """For good, and nobody's token is to blame."""
    RETRY = "retry"
    """The entry stays pending, and is delivered again."""
    WAIT = "wait"
    """It was not tried in earnest, or the provider asked for a pause: the entry stays in hand until then."""

    @property
    def is_final(self) -> bool:
        """Whether the device has its outcome."""
        return self not in (TokenAction.RETRY, TokenAction.WAIT)


def action_of(settlement: Settlement) -> TokenAction:
    """Choose the action for one token."""
    match settlement:
        case Sent():
            return TokenAction.SENT
        case Forget():
            return TokenAction.REMOVE
        case Dead(code=code):
            if code == THIRD_PARTY_AUTH:
                return TokenAction.FATAL
            return TokenAction.FAILED if code in _NEVER_SENT else TokenAction.RETRY
        case Again(spends_attempt=True):
            return TokenAction.RETRY
        case Again() | Parked() | Unstarted():
            return TokenAction.WAIT
        case Suppressed() | Expired() | Cancelled() | Unsure() | Intent():
            return TokenAction.FAILED
        case _:
            assert_never(settlement)


def fault_of(change: Change) -> str | None:
    """Return the code of a fault of a credential (FCM's, or APNs' in the project), which operators mend; else None.

    A refused credential keeps the entry, which goes out once it is accepted again.
    """
    if change.made is not None and change.made.status == DENIED:
        return change.made.code
    return THIRD_PARTY_AUTH if action_of(change.settlement) is TokenAction.FATAL else None
