"""Passwords and second factors of people: how they are made, kept and checked."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from functools import cache
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from waypost.domain.time import SECOND_MS, Instant
from waypost.stores.sql.accounts import Account

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_STEP_S: Final = 30
_PASSWORD_BYTES: Final = 15
"""120 bits: nobody guesses it, and it need not be changed."""


def new_password() -> str:
    """Make a password."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def new_secret() -> str:
    """Make the secret of a second factor."""
    import pyotp  # noqa: PLC0415 - an extra

    return str(pyotp.random_base32())


def uri_of(name: str, secret: str) -> str:
    """Return what an authenticator takes as a second factor, as text or as a QR code."""
    import pyotp  # noqa: PLC0415 - an extra

    return str(pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name="Waypost"))


def hash_of(password: str) -> str:
    """Hash a password (RFC 9106, Argon2id)."""
    return _hasher().hash(password)


def token_hash(token: str) -> bytes:
    """Hash the token of a session: what is stored lets nobody in."""
    return hashlib.sha256(token.encode()).digest()


class Checking:
    """The check of passwords: two at once, since each takes 64 MiB for a tenth of a second."""

    def __init__(self) -> None:
        self._at_once = asyncio.Semaphore(2)

    async def is_password(self, account: Account | None, password: str) -> bool:
        """Tell whether *password* is the account's; it takes as long where there is no such account, or no password."""
        async with self._at_once:
            return await asyncio.to_thread(_verify, account.password if account else "", password)


def step_of(secret: str, code: str, now: Instant) -> int | None:
    """Return the step of time whose code this is: the present one, or one beside it; None where it is wrong."""
    import pyotp  # noqa: PLC0415 - an extra

    totp, step = pyotp.TOTP(secret), now // SECOND_MS // _STEP_S
    matching = [near for near in (step - 1, step, step + 1) if compare_digest(totp.at(near * _STEP_S), code)]
    return matching[-1] if matching else None


def _verify(hashed: str, password: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError  # noqa: PLC0415 - an extra

    nobody = _nobody()  # made by the first that is checked, whoever it is
    try:
        return _hasher().verify(hashed or nobody, password)
    except (Argon2Error, InvalidHashError):
        return False


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # noqa: PLC0415 - an extra

    return PasswordHasher()


@cache
def _nobody() -> str:
    return hash_of(new_password())
