"""The claims of a token, checked once its signature holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from waypost.adapters.jwt.settings import IssuerSettings
from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.scope import Scope
from waypost.domain.submission import Identity
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.tokens import Bearer

Seconds = Annotated[float, Meta(ge=0, le=10_000_000_000)]
"""A NumericDate (RFC 7519 section 2), up to the year 2286."""
NAME_LIMIT: Final = 128


class Times(Struct, frozen=True):
    """The times of a token (RFC 7519 section 4.1); one without an end or a beginning is not accepted."""

    exp: Seconds
    iat: Seconds
    nbf: Seconds = 0


class TokenRejected(Struct, frozen=True):
    """The reason why a token is not accepted, in our words."""

    why: str


class Issuer(Struct, frozen=True):
    """An issuer of one app."""

    app: AppId
    name: str
    """The name that the configuration gives it."""
    settings: IssuerSettings


def bearer_of(claims: Mapping[str, Any], issuer: Issuer, now: Instant) -> Bearer | TokenRejected:
    """Read whom *claims* speak for, or say why they are not accepted."""
    settings, now_s = issuer.settings, now / SECOND_MS
    if claims.get("iss") != settings.issuer or settings.audience not in audiences(claims):
        return TokenRejected("the token is not for this service")
    try:
        times = msgspec.convert(claims, Times)
        subject = msgspec.convert(claims.get(settings.subject_claim), Identity)
    except msgspec.ValidationError:
        return TokenRejected(f"the token needs `exp`, `iat` and `{settings.subject_claim}`")
    ends_s = min(times.exp, times.iat + settings.max_age_s) + settings.leeway_s
    if now_s >= ends_s:
        return TokenRejected("the token has expired")
    if max(times.iat, times.nbf) > now_s + settings.leeway_s:
        return TokenRejected("the token is not valid yet")
    name = f"{issuer.name}:{subject}"
    if len(name) > NAME_LIMIT:
        return TokenRejected("the subject of the token is too long")
    user = UserId(subject) if settings.users else None
    return Bearer(issuer.app, CallerId(name), _scopes(claims, settings), user, Instant(int(ends_s * SECOND_MS)))


def audiences(claims: Mapping[str, Any]) -> list[Any]:
    """List whom a token is for: one text or a list (RFC 7519 section 4.1.3)."""
    said = claims.get("aud")
    return said if isinstance(said, list) else [said]


def _scopes(claims: Mapping[str, Any], settings: IssuerSettings) -> frozenset[Scope]:
    said = claims.get(settings.scope_claim) if settings.scope_claim is not None else None
    words = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
    return frozenset(settings.scopes) | {scope for scope in settings.claimed_scopes if scope.value in words}
