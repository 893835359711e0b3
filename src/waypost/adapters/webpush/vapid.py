"""Voluntary application server identification (RFC 8292)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from waypost.adapters.webpush.settings import WebPushSettings
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.time import HOUR_MS, SECOND_MS, Instant

LIFETIME_MS = 12 * HOUR_MS
"""The RFC allows 24 hours; clocks differ."""
RENEW_BEFORE_MS = HOUR_MS


class Vapid:
    """The app's key, and what it signs for each push service."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, subject: str) -> None:
        self._key = key
        self._subject = subject
        self.public_key = _base64url(key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))

    def authorization(self, audience: str, now: Instant) -> str:
        """The header's value for the push service whose origin is *audience*, good for 12 hours from *now*."""
        header = {"typ": "JWT", "alg": "ES256"}
        claims = {"aud": audience, "exp": (now + LIFETIME_MS) // SECOND_MS, "sub": self._subject}
        signed = f"{_base64url(msgspec.json.encode(header))}.{_base64url(msgspec.json.encode(claims))}"
        der = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        r, s = decode_dss_signature(der)
        signature = _base64url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
        return f"vapid t={signed}.{signature}, k={self.public_key}"


def read_vapid(app: AppId, settings: WebPushSettings) -> Vapid:
    """The app's identity; ConfigurationError names ``apps.<app>.webpush.vapid_private_key_file`` or ``.subject``."""
    path = f"apps.{app}.webpush.vapid_private_key_file"
    try:
        key = load_pem_private_key(Path(settings.vapid_private_key_file).read_bytes(), password=None)
    except OSError as error:
        raise ConfigurationError(path, f"cannot read the VAPID key: {error.strerror or 'unreadable'}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(path, "is not an unencrypted private key in PEM form") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ConfigurationError(path, "must hold an EC key on the curve P-256")
    if not settings.subject.startswith(("mailto:", "https://")):
        raise ConfigurationError(f"apps.{app}.webpush.subject", "must begin with mailto: or https://")
    return Vapid(key, settings.subject)


def _base64url(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode()
