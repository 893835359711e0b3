"""Outcomes: what a sender reports of one attempt, a closed set of values."""

from __future__ import annotations

from msgspec import Struct

from waypost.domain.time import Instant
from waypost.domain.words import Words


class Taken(Struct, frozen=True, tag=True):
    """The provider accepted the message; *provider_id* is its name for it ("" where it gives none)."""

    provider_id: str = ""
    note: str = ""
    """The change that let it be taken, for the record of the attempt."""


class Gone(Struct, frozen=True, tag=True):
    """The token is dead; *since* is the provider's time of that, None where it gives none."""

    code: str
    since: Instant | None = None


class Refused(Struct, frozen=True, tag=True):
    """The message will never be taken as it is."""

    code: str
    why: str
    elsewhere: bool = False
    """Whether that is said of what our account may send: another account may take it."""


class Reach(Words):
    """The reach of a refusal of our credential: what else it would refuse."""

    DEVICE = "device"
    """This device alone, unless others are refused in a row with it."""
    SCOPE = "scope"
    """Everything in the same part of the provider (``Capabilities.scope_of``): a topic, a push service."""
    CREDENTIAL = "credential"
    """Everything that is sent with the credential."""


class CredentialRejected(Struct, frozen=True, tag=True):
    """The credential was refused, not the message: nothing was taken, nothing will be in *reach* until it is mended."""

    code: str
    why: str
    reach: Reach = Reach.CREDENTIAL


class Throttled(Struct, frozen=True, tag=True):
    """The provider wants fewer; nothing was taken. *wait_ms* is the least wait that it wants, None for none."""

    code: str
    wait_ms: int | None = None
    whole: bool = False
    """Whether it may speak of the whole credential or scope (the quota of a project), not of one token alone."""


class Unreachable(Struct, frozen=True, tag=True):
    """The provider provably took nothing: the message was never written, or refused before processing."""

    code: str
    why: str
    wait_ms: int | None = None


class Unanswered(Struct, frozen=True, tag=True):
    """The message was written, but no answer tells whether the provider has it."""

    code: str
    why: str
    wait_ms: int | None = None


Outcome = Taken | Gone | Refused | CredentialRejected | Throttled | Unreachable | Unanswered


def outcome_name(outcome: type[Outcome]) -> str:
    """Name a kind of outcome as receipts and metrics do."""
    return "denied" if outcome is CredentialRejected else outcome.__name__.lower()
