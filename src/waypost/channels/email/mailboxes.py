"""Mailboxes as people write them, in the one form that is stored (RFC 5321; domains by IDNA 2008)."""

from __future__ import annotations

import re
from typing import Final

from waypost.domain.device import Registration, RegistrationCheck, is_token_alone
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId

LOCAL_LIMIT: Final = 64
DOMAIN_LIMIT: Final = 255
MAILBOX_LIMIT: Final = 254
"""The longest mailbox: a path of 256 octets has two brackets (RFC 5321, section 4.5.3.1.3)."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+(?=[a-z0-9-]*[a-z]){_LABEL}")
"""Two labels at least, the last of them no number: an address of a machine is no domain of mailboxes."""


def canonical(text: str) -> str:
    """Return the mailbox with its domain in lower case and ASCII; what is none comes back as it was."""
    import idna  # noqa: PLC0415 - whoever reads a configuration needs no tables of Unicode

    local, at, domain = text.strip().rpartition("@")
    if not at:
        return text
    try:
        ascii_domain = idna.encode(domain, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return text
    return f"{local}@{ascii_domain}"


def why_no_mailbox(text: str) -> str | None:
    """Say why *text*, in its canonical form, cannot be sent to; None where it can."""
    local, at, domain = text.rpartition("@")
    if not at:
        return "must be a mailbox, such as ann@example.com"
    if local.startswith('"'):
        return "has a quoted name, which is not supported"
    if not local.isascii():
        return "has a name that is not ASCII, which is not supported"
    if not _LOCAL.fullmatch(local) or len(local) > LOCAL_LIMIT:
        return f"must have a name of letters, digits and signs before the @, at most {LOCAL_LIMIT} bytes"
    if not _DOMAIN.fullmatch(domain) or len(domain) > DOMAIN_LIMIT:
        return "must have a domain after the @"
    if len(text) > MAILBOX_LIMIT:
        return f"must be at most {MAILBOX_LIMIT} bytes"
    return None


def registration_check(_app: AppId, _settings: object) -> RegistrationCheck:
    """Return the check of mailboxes, which is the same for every app."""

    def faults(registration: Registration) -> list[Fault]:
        why = why_no_mailbox(registration.token)
        return is_token_alone(registration) + ([] if why is None else [Fault("token", why)])

    return faults
