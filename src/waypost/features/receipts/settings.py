"""Settings of the receipts of devices."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from waypost.domain.errors import ConfigurationError

SECRET_BYTES: Final = 32
"""The fewest bytes of the file, as many as the key of HMAC-SHA256 needs (RFC 2104 section 3)."""


class ReceiptSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the signed links by which devices confirm without a session."""

    secret_file: str | None = None
    """At least 32 random bytes that sign links, the same on every machine; with `rest.public_url`. Unset: no links."""
    in_every_push: bool = False
    """Whether every push carries its link, not only one whose fallback waits."""


def secret_of(settings: ReceiptSettings) -> bytes | None:
    """Read the secret; None where no links are made. ConfigurationError where it cannot be one."""
    return None if settings.secret_file is None else _read(Path(settings.secret_file))


@cache
def _read(file: Path) -> bytes:
    try:
        secret = file.read_bytes()
    except OSError as away:
        raise ConfigurationError("receipts.secret_file", f"cannot be read: {away.strerror}") from None
    if len(secret) < SECRET_BYTES:
        raise ConfigurationError("receipts.secret_file", f"has {len(secret)} bytes, at least {SECRET_BYTES}")
    return secret
