"""What can be set about an issuer of tokens."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from waypost.domain.scope import Scope
from waypost.runtime.listening import is_loopback


class Algorithm(StrEnum):
    """A signature algorithm of tokens (RFC 7518 section 3.1)."""

    HS256 = "HS256"
    HS384 = "HS384"
    HS512 = "HS512"
    RS256 = "RS256"
    RS384 = "RS384"
    RS512 = "RS512"
    ES256 = "ES256"
    ES384 = "ES384"
    ES512 = "ES512"

    @property
    def is_shared(self) -> bool:
        """Whether who verifies could sign as well."""
        return self.value.startswith("HS")


SECRET_BYTES: Final = {Algorithm.HS256: 32, Algorithm.HS384: 48, Algorithm.HS512: 64}
"""No shorter than what the hash gives (RFC 7518 section 3.2)."""


OF_USERS: Final = (Scope.SEND, Scope.DEVICES, Scope.READ)
"""What end users may do, each for themselves; the other scopes reach everybody of the app."""


class IssuerSettings(Struct, frozen=True, kw_only=True):
    """An issuer whose tokens are accepted; the keys come by one of `secret`, `jwks_url`, `jwks_file`."""

    issuer: Annotated[str, Meta(min_length=1)]
    """The `iss` of its tokens, exactly."""
    audience: Annotated[str, Meta(min_length=1)]
    """What their `aud` must contain; no two issuers share both."""
    algorithms: Annotated[tuple[Algorithm, ...], Meta(min_length=1)]
    """`HS…` with `secret`, `RS…` and `ES…` with a key set."""
    secret: str | None = None
    """The shared secret, `${NAME}` or `file:PATH`, of at least 32, 48 or 64 bytes, as the hash. A change needs a
    restart."""
    jwks_url: str | None = None
    """Its key set: https, or http on the loopback; redirects are not followed."""
    jwks_file: str | None = None
    """A file with its key set, read again when a token names an unknown key."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    jwks_refresh_s: Annotated[float, Meta(ge=10, le=86_400)] = 300.0
    """Seconds after which the next token has the key set fetched again; while that fails, the last holds for a day."""
    users: bool = False
    """Whether its tokens are those of end users, not of services."""
    subject_claim: Annotated[str, Meta(min_length=1)] = "sub"
    """The claim with the user's id, or the service's name."""
    scopes: tuple[Scope, ...] = ()
    """The scopes of each token; of end users `send`, `devices` and `read` only."""
    scope_claim: str | None = None
    """A claim, a list or a text with spaces, that adds scopes of `claimed_scopes`."""
    claimed_scopes: tuple[Scope, ...] = ()
    """The scopes that `scope_claim` may add."""
    leeway_s: Annotated[float, Meta(ge=0, le=300)] = 30.0
    """Seconds by which clocks may differ."""
    max_age_s: Annotated[float, Meta(ge=1)] = 86_400.0
    """The greatest age of a token since `iat`, seconds, whatever its `exp`."""


def misfit(settings: IssuerSettings) -> tuple[str, str] | None:
    """Find the key that is wrong about an issuer, and why; None where nothing is."""
    given = [key for key in ("secret", "jwks_url", "jwks_file") if getattr(settings, key) is not None]
    if len(given) != 1:
        return "secret", "give one of `secret`, `jwks_url`, `jwks_file`"
    for algorithm in settings.algorithms:
        if algorithm.is_shared is not (settings.secret is not None):
            return "algorithms", f"{algorithm} does not go with `{given[0]}`"
    if settings.secret is not None:
        least = max(SECRET_BYTES[algorithm] for algorithm in settings.algorithms)
        if len(settings.secret.encode()) < least:
            return "secret", f"is shorter than {least} bytes"
    if settings.jwks_url is not None and not is_safe(settings.jwks_url):
        return "jwks_url", "is https, or http on the loopback, without a user and a fragment"
    if not settings.scopes and not (settings.scope_claim and settings.claimed_scopes):
        return "scopes", "its tokens may do nothing: give `scopes`, or `scope_claim` with `claimed_scopes`"
    return _beyond_one_user(settings) if settings.users else None


def _beyond_one_user(settings: IssuerSettings) -> tuple[str, str] | None:
    for key, scopes in (("scopes", settings.scopes), ("claimed_scopes", settings.claimed_scopes)):
        for scope in scopes:
            if scope not in OF_USERS:
                return key, f"`{scope}` is not for end users: {', '.join(OF_USERS)}"
    return None


def is_safe(url: str) -> bool:
    """Tell whether what *url* answers can be believed: https, or http on the loopback."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or parts.password is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
