"""Telephone numbers: the form in which they are stored, and what is none.

Source: ITU-T E.164 (11/2010), section 6: a country code and a national number, 15 digits at most.
"""

from __future__ import annotations

import re
from typing import Any, Final

from waypost.domain.device import Registration, RegistrationCheck, is_token_alone
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId

_NUMBER: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_WRITTEN: Final = re.compile(r"[ \-./()\u00a0\u2011]")


def canonical(said: str) -> str:
    """Return a number without what people put between its digits, with ``+`` in place of a leading ``00``."""
    digits = _WRITTEN.sub("", said)
    digits = f"+{digits[2:]}" if digits.startswith("00") else digits
    return digits if _NUMBER.fullmatch(digits) else said


def registration_check(_app: AppId, _settings: Any) -> RegistrationCheck:
    """Build the check: the number must have its country."""

    def faults(registration: Registration) -> list[Fault]:
        found = is_token_alone(registration)
        if not _NUMBER.fullmatch(registration.token):
            found.append(Fault("token", "must be a telephone number with its country, such as +491701234567"))
        return found

    return faults
