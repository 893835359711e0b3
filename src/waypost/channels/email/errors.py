"""Every answer of an SMTP server and what it means for a delivery.

Sources: RFC 5321 sections 4.2.2 and 4.2.3 (codes), RFC 3463 with IANA's registry (enhanced codes), RFC 4954 section 6
(authentication), RFC 7505 (domains without mail). The codes alone decide: what servers write beside them differs, and
none of it is kept. docs/providers/smtp.md has the same table for operators.
"""

from __future__ import annotations

import re
from enum import IntEnum

from waypost.channels.push.answers import Meaning, outcome_of_meaning
from waypost.domain.outcome import Outcome, Unanswered, Unreachable


class Stage(IntEnum):
    """The stage of a session that an answer is for."""

    GREETING = 1
    """All until the server knows that we want to sign in."""
    LOGIN = 2
    MAIL = 3
    """The sender."""
    RCPT = 4
    """The recipient."""
    DATA = 5
    """The wish to send the message."""
    DOT = 6
    """The message: from its first byte on, the server may have taken it."""


_FULL = "the mailbox, or the server's storage, is full at the moment"
_SLOWER = "the server wants fewer messages"
_UNKNOWN = "there is no such mailbox"
_TOO_LARGE = "the message is too large for the server"
_NOT_US = "the server does not let us send: user name, password or token are wrong, or may not send as this sender"

STATUSES: dict[str, tuple[Meaning, str]] = {
    "4.2.2": (Meaning.NOT_TAKEN, _FULL),
    "4.3.1": (Meaning.NOT_TAKEN, _FULL),
    "4.3.2": (Meaning.THROTTLED_WHOLE, "the server takes nothing at the moment"),
    "4.4.5": (Meaning.THROTTLED_WHOLE, _SLOWER),
    "4.5.3": (Meaning.THROTTLED, _SLOWER),
    "4.7.0": (Meaning.THROTTLED, _SLOWER),
    "4.7.1": (Meaning.THROTTLED, "the server wants to be asked again later (greylisting), or fewer messages"),
    "4.7.28": (Meaning.THROTTLED, _SLOWER),
    "5.1.1": (Meaning.DEAD_TOKEN, _UNKNOWN),
    "5.1.2": (Meaning.DEAD_TOKEN, "the mailbox's domain does not exist"),
    "5.1.3": (Meaning.DEAD_TOKEN, "the server does not understand the mailbox"),
    "5.1.6": (Meaning.DEAD_TOKEN, "the mailbox has moved, nobody says where"),
    "5.1.7": (Meaning.DENIED, "the server does not understand our sender"),
    "5.1.8": (Meaning.DENIED, "the domain of our sender does not exist for the server"),
    "5.1.10": (Meaning.DEAD_TOKEN, "the mailbox's domain takes no mail"),
    "5.2.1": (Meaning.DEAD_TOKEN, "the mailbox is closed"),
    "5.2.2": (Meaning.REFUSED, "the mailbox is full"),
    "5.2.3": (Meaning.REFUSED, _TOO_LARGE),
    "5.3.4": (Meaning.REFUSED, _TOO_LARGE),
    "5.7.1": (Meaning.REFUSED, "the server's rules forbid the message"),
    "5.7.8": (Meaning.DENIED, _NOT_US),
    "5.7.9": (Meaning.DENIED, "the server wants another way to sign in"),
    "5.7.26": (Meaning.REFUSED, "the recipient's server finds no valid DKIM or SPF for our domain"),
}
"""By enhanced code, which then is part of ours: ``smtp_550_5.1.1``."""

CODES: dict[int, tuple[Meaning, str]] = {
    421: (Meaning.THROTTLED_WHOLE, "the server closes the connection, or has too many"),
    450: (Meaning.THROTTLED, "the mailbox is not available at the moment"),
    451: (Meaning.NOT_TAKEN, "the server failed"),
    452: (Meaning.NOT_TAKEN, _FULL),
    454: (Meaning.NOT_TAKEN, "the server cannot encrypt, or check who we are, at the moment"),
    530: (Meaning.DENIED, "the server wants us to sign in"),
    535: (Meaning.DENIED, _NOT_US),
    538: (Meaning.DENIED, "the server lets us sign in on encrypted connections alone"),
    552: (Meaning.REFUSED, _TOO_LARGE),
    556: (Meaning.DEAD_TOKEN, "the mailbox's domain takes no mail"),
}
"""By code, where no enhanced one says more: ``smtp_550``."""

LATER = (Meaning.NOT_TAKEN, "the server cannot take it at the moment")
REFUSED = (Meaning.REFUSED, "the server refuses the message")
_NOT_CHECKED = 454
"""Speaks of TLS or of signing in, whatever enhanced code stands beside it."""
_ENHANCED = re.compile(r"([45]\.\d{1,3}\.\d{1,3})\b")


def outcome_of_reply(code: int, text: str, stage: Stage) -> Outcome:
    """Turn an answer that is no success into an outcome; *text* begins with the enhanced code, where there is one."""
    if not 400 <= code <= 599:
        return outcome_without_answer("bad_answer", "the server does not speak SMTP", stage)
    found = None if code == _NOT_CHECKED else _ENHANCED.match(text)
    enhanced = found[1] if found and found[1][0] == str(code)[0] and found[1] in STATUSES else None
    name = f"smtp_{code}" if enhanced is None else f"smtp_{code}_{enhanced}"
    known = STATUSES[enhanced] if enhanced else CODES.get(code, LATER if code < 500 else REFUSED)
    meaning, why = _at(stage, code, *known)
    return outcome_of_meaning(meaning, name, why, None)


def outcome_without_answer(code: str, why: str, stage: Stage) -> Outcome:
    """Return the outcome where no answer came, or none that can be read."""
    return Unanswered(code, why) if stage is Stage.DOT else Unreachable(code, why)


def _at(stage: Stage, code: int, meaning: Meaning, why: str) -> tuple[Meaning, str]:
    """Read an answer by its stage: before the recipient was named, none speaks of the recipient."""
    if stage >= Stage.RCPT:
        return meaning, why
    if code >= 500 and stage is not Stage.GREETING and why != _TOO_LARGE:
        return Meaning.DENIED, _NOT_US if meaning is not Meaning.DENIED else why
    if meaning is Meaning.THROTTLED:
        return Meaning.THROTTLED_WHOLE, why
    return (Meaning.NOT_TAKEN if stage is Stage.GREETING and code >= 500 else meaning), why
