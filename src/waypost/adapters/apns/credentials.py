"""The signing key and the provider tokens made with it.

Source: developer.apple.com, "Establishing a token-based connection to APNs"; RFC 7515 and 7518 section 3.4.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from waypost.adapters.apns.settings import ApnsSettings
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant

LIFETIME_MS = 50 * MINUTE_MS
"""Apple wants a new token after 20 to 60 minutes."""
SHORTEST_LIFETIME_MS = 20 * MINUTE_MS
"""Renewed sooner, Apple answers TooManyProviderTokenUpdates."""


def read_key(app: AppId, settings: ApnsSettings) -> ec.EllipticCurvePrivateKey:
    """The signing key, in PKCS#8 or the older EC form; ConfigurationError names ``apps.<app>.apns.key_file``."""
    path = f"apps.{app}.apns.key_file"
    try:
        key = load_pem_private_key(Path(settings.key_file).read_bytes(), password=None)
    except OSError as error:
        raise ConfigurationError(path, f"cannot read the signing key: {error.strerror or 'unreadable'}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(path, "is not an unencrypted private key in PEM form") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ConfigurationError(path, "must hold an EC key on the curve P-256")
    return key


class ProviderTokens:
    """The current provider token.

    Its time of issue is the start of a 50-minute slot and the signature is deterministic (RFC 6979), so that all
    processes with one key present one token.
    """

    def __init__(self, key: ec.EllipticCurvePrivateKey, key_id: str, team_id: str) -> None:
        self._key = key
        self._key_id = key_id
        self._team_id = team_id
        self._issued_at = Instant(-LIFETIME_MS)
        self._current = ""

    def at(self, now: Instant) -> str:
        """The token to use at *now*; the same string until it is renewed."""
        slot = Instant(now - now % LIFETIME_MS)
        age_ms = now - self._issued_at
        clock_went_back = age_ms < -MINUTE_MS
        if clock_went_back or (slot > self._issued_at and age_ms >= SHORTEST_LIFETIME_MS):
            self._issue(slot)
        return self._current

    def renew(self, refused: str, now: Instant) -> str:
        """The token to use after Apple called *refused* too old: a newer one, at most every 20 minutes."""
        if refused == self._current and now - self._issued_at >= SHORTEST_LIFETIME_MS:
            self._issue(now)
        return self._current

    def _issue(self, issued_at: Instant) -> None:
        self._issued_at = issued_at
        header = {"alg": "ES256", "kid": self._key_id}
        claims = {"iss": self._team_id, "iat": issued_at // SECOND_MS}
        signed = f"{_base64url(msgspec.json.encode(header))}.{_base64url(msgspec.json.encode(claims))}"
        der = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(der)
        self._current = f"{signed}.{_base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _base64url(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode()
