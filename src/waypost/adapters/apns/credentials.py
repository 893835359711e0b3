"""Provider tokens.

Source: developer.apple.com, "Establishing a token-based connection to APNs".
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric import ec

from waypost.adapters.push.signing import signed_es256
from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant

LIFETIME_MS = 50 * MINUTE_MS
"""Apple wants a new token after 20 to 60 minutes."""
SHORTEST_LIFETIME_MS = 20 * MINUTE_MS
"""Renewed sooner, Apple answers TooManyProviderTokenUpdates."""


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
        claims: dict[str, str | int] = {"iss": self._team_id, "iat": issued_at // SECOND_MS}
        self._current = signed_es256(self._key, {"kid": self._key_id}, claims)
