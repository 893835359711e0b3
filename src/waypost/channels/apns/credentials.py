"""The credentials for Apple: provider tokens, or a client certificate.

Source: developer.apple.com, "Establishing a token-based connection to APNs".
"""

from __future__ import annotations

import re
import ssl

from cryptography.hazmat.primitives.asymmetric import ec

from waypost.channels.apns.certificate import use_certificate
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push.origin import origin_of, own_trust
from waypost.channels.push.signing import read_p256, signed_es256
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant
from waypost.http2 import Origin

_APPLE_ID = re.compile(r"[A-Za-z0-9]{10}")
SLOT_MS = 25 * MINUTE_MS
"""Milliseconds of a slot; a token is issued at its start; Apple wants none older than 60 minutes."""
SHORTEST_USE_MS = 20 * MINUTE_MS
"""Milliseconds that a token is used at least: changed sooner, Apple answers TooManyProviderTokenUpdates."""


class ProviderTokens:
    """The current provider token.

    Its time of issue is the start of a slot and the signature is deterministic (RFC 6979), so that all processes with
    one key present one token. A process that begins late in a slot keeps that slot's token for 20 minutes all the same,
    so that no connection sees two within that time; it is 45 minutes old then at most.
    """

    def __init__(self, key: ec.EllipticCurvePrivateKey, key_id: str, team_id: str) -> None:
        self._key = key
        self._key_id = key_id
        self._team_id = team_id
        self._issued_at = Instant(0)
        self._used_since = Instant(0)
        self._current = ""

    def at(self, now: Instant) -> str:
        """Return the token to use at *now*; the same string until it is renewed."""
        slot = Instant(now - now % SLOT_MS)
        clock_went_back = now - self._used_since < -MINUTE_MS
        is_used_long_enough = now - self._used_since >= SHORTEST_USE_MS
        if not self._current or clock_went_back or (slot > self._issued_at and is_used_long_enough):
            self._issue(slot, now)
        return self._current

    def renew(self, refused: str, now: Instant) -> str:
        """Return the token to use after Apple called *refused* too old: a newer one, at most every 20 minutes."""
        if refused == self._current and now - self._issued_at >= SHORTEST_USE_MS:
            self._issue(now, now)
        return self._current

    def _issue(self, issued_at: Instant, now: Instant) -> None:
        self._issued_at = issued_at
        self._used_since = now
        claims: dict[str, str | int] = {"iss": self._team_id, "iat": issued_at // SECOND_MS}
        self._current = signed_es256(self._key, {"kid": self._key_id}, claims)


class Identity:
    """The identity of requests and connections: either provider tokens, or a certificate."""

    def __init__(self, tokens: ProviderTokens | None, certificate: tuple[str, str] | None = None) -> None:
        self._tokens = tokens
        self._certificate = certificate
        """The setting and the file."""
        self._presenting: ssl.SSLContext | None = None
        """The TLS context of connections that present it, this credential's alone."""
        if certificate is not None:
            use_certificate(*certificate, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def jwt_at(self, now: Instant) -> str:
        """Return the provider token of a request; "" where the connection says who we are."""
        return "" if self._tokens is None else self._tokens.at(now)

    def renewed_jwt(self, refused: str, now: Instant) -> str:
        """Renew the provider token as ``ProviderTokens.renew`` does."""
        return "" if self._tokens is None else self._tokens.renew(refused, now)

    def origin(self, section: str, url: str, settings: ApnsSettings) -> Origin:
        """Build the origin of Apple at *url*; connections there present the certificate, where there is one.

        ConfigurationError as ``origin_of``.
        """
        if self._certificate is not None and self._presenting is None:
            self._presenting = own_trust(section, settings.ca_file)
            use_certificate(*self._certificate, self._presenting)
        return origin_of(section, url, settings.ca_file, settings.proxy, self._presenting)


def identify(section: str, settings: ApnsSettings) -> Identity:
    """Read the credential of *settings*; ConfigurationError names the setting in *section* that cannot be used."""
    by_key = {"key_file": settings.key_file, "key_id": settings.key_id, "team_id": settings.team_id}
    if settings.certificate_file is not None:
        for name, value in by_key.items():
            if value is not None:
                raise ConfigurationError(f"{section}.{name}", "must not be given beside certificate_file")
        return Identity(None, (f"{section}.certificate_file", settings.certificate_file))
    for name, value in by_key.items():
        if value is None:
            raise ConfigurationError(f"{section}.{name}", "is required, where there is no certificate_file")
    assert settings.key_file is not None
    assert settings.key_id is not None
    assert settings.team_id is not None
    for name, apple_id in (("key_id", settings.key_id), ("team_id", settings.team_id)):
        if not _APPLE_ID.fullmatch(apple_id):
            raise ConfigurationError(f"{section}.{name}", "must be 10 letters and digits, as Apple's page shows it")
    key = read_p256(f"{section}.key_file", settings.key_file)
    return Identity(ProviderTokens(key, settings.key_id, settings.team_id))
