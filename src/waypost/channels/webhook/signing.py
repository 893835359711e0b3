"""Signatures of Standard Webhooks (version 1): HMAC-SHA256 over id, time and body, with one secret or two.

Source: Standard Webhooks 1.0, "Signature scheme".
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from waypost.domain.errors import ConfigurationError

PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = range(24, 65)

Headers = tuple[tuple[str, str], ...]


def read_secret(section: str, field: str, path: str) -> bytes:
    """Read a secret from its file; ConfigurationError names ``<section>.<field>`` and never shows the secret."""
    setting = f"{section}.{field}"
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no text"
        raise ConfigurationError(setting, f"cannot be read: {why}") from None
    secret = secret_of(text)
    if secret is None:
        raise ConfigurationError(setting, f"must hold {PREFIX} and 24 to 64 bytes in base64")
    return secret


def secret_of(text: str) -> bytes | None:
    """Decode a secret as people pass it on; None for what is none."""
    if not text.startswith(PREFIX):
        return None
    try:
        secret = b64decode(text.removeprefix(PREFIX), validate=True)
    except NotBase64:
        return None
    return secret if len(secret) in _SECRET_BYTES else None


def signed(webhook_id: str, at_s: int, body: bytes, secrets: Sequence[bytes]) -> Headers:
    """Build the three headers of a message; each of *secrets* signs, so that a receiver who knows one of them believes.

    The id, the same at each attempt, must hold no full stop: it would move the border between id and time.
    """
    text = b"%s.%d.%s" % (webhook_id.encode(), at_s, body)
    signatures = [b64encode(hmac.digest(secret, text, hashlib.sha256)).decode() for secret in secrets]
    return (
        ("webhook-id", webhook_id),
        ("webhook-timestamp", str(at_s)),
        ("webhook-signature", " ".join(f"v1,{each}" for each in signatures)),
    )
