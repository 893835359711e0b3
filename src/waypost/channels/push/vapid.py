"""Voluntary application server identification (RFC 8292)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from waypost.channels.push.signing import base64url, read_p256, signed_es256
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import HOUR_MS, SECOND_MS, Instant

LIFETIME_MS = 12 * HOUR_MS
"""Milliseconds for which an identity is signed; the RFC allows 24 hours; clocks differ."""
RENEW_BEFORE_MS = HOUR_MS


_SUBJECT = re.compile(
    r"mailto:[^:@\s]+@(?P<domain>[A-Za-z0-9.-]+)|https://(?P<host>[A-Za-z0-9.-]+)(?::[0-9]+)?(?:/\S*)?"
)


class Vapid:
    """The app's key, which signs for each push service."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, subject: str) -> None:
        self._key = key
        self._subject = subject
        self.public_key = public_half(key)

    def authorization(self, audience: str, now: Instant) -> str:
        """Build the header's value for the push service with the origin *audience*, good for 12 hours from *now*."""
        claims: dict[str, str | int] = {"aud": audience, "exp": (now + LIFETIME_MS) // SECOND_MS, "sub": self._subject}
        return f"vapid t={signed_es256(self._key, {'typ': 'JWT'}, claims)}, k={self.public_key}"


def public_half(key: ec.EllipticCurvePrivateKey) -> str:
    """Return what a page subscribes with: the ``applicationServerKey``, base64url (W3C Push API, section 7.2)."""
    return base64url(key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def write_new_key(file: Path) -> str:
    """Make a key in a new *file* for its user alone, and return its public half; OSError where that cannot be."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as written:
        written.write(pem)
    return public_half(key)


def subject_fault(subject: str) -> str:
    """Explain what is wrong with a contact, "" where nothing is.

    RFC 8292 section 2.1 wants a mailto: or https: URI. Apple answers BadJwtToken, for every message, to a bare address,
    to mailto: twice and to a host that is localhost.
    """
    if not subject.startswith(("mailto:", "https://")):
        return "must begin with mailto: or https://"
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        return "must be one mail address after mailto:, or an https URL"
    host = (found["domain"] or found["host"]).lower()
    return "must not be at localhost: Apple refuses it" if host == "localhost" else ""


def read_vapid(section: str, key_file: str, subject: str) -> Vapid:
    """Read the app's identity; ConfigurationError names ``<section>.vapid_private_key_file`` or ``.subject``."""
    key = read_p256(f"{section}.vapid_private_key_file", key_file)
    why = subject_fault(subject)
    if why:
        raise ConfigurationError(f"{section}.subject", why)
    return Vapid(key, subject)
