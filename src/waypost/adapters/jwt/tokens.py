"""Tokens of every configured issuer, verified."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Final, NoReturn

import jwt
import msgspec
from msgspec import Meta, Struct

from waypost.adapters.jwt.claims import Issuer, TokenRejected, audiences, bearer_of
from waypost.adapters.jwt.key_set import shared
from waypost.adapters.jwt.key_source import FetchedKeys, SharedKeys, VerifyingKeys
from waypost.adapters.jwt.settings import Algorithm
from waypost.domain.errors import ErrorCode, WaypostError
from waypost.ports.clock import Clock
from waypost.ports.tokens import Bearer
from waypost.telemetry import Telemetry

TOKEN_LIMIT: Final = 8_192
"""The longest token that is read, characters."""
_SIGNATURES: Final = jwt.PyJWS(algorithms=[each.value for each in Algorithm])


class _Header(Struct, frozen=True):
    """The parts of a header that are read: not the keys that a token brings or points to (``jwk``, ``x5u``)."""

    alg: str
    kid: Annotated[str, Meta(max_length=256)] | None = None


_header = msgspec.json.Decoder(_Header)
_claims = msgspec.json.Decoder(dict[str, Any])


class IssuedTokens:
    """A verifier of what the configured issuers signed (fulfils ports.tokens.TokenVerifier and Lifecycle)."""

    def __init__(self, issuers: Iterable[Issuer], clock: Clock, telemetry: Telemetry) -> None:
        self._clock = clock
        self._known: Mapping[tuple[str, str], tuple[Issuer, VerifyingKeys]] = {
            (each.settings.issuer, each.settings.audience): (each, _keys_of(each, clock, telemetry)) for each in issuers
        }

    async def start(self) -> None:
        """Ask for every key set."""
        await asyncio.gather(*(keys.start() for _, keys in self._known.values()))

    async def stop(self) -> None:
        """Ask no more."""
        await asyncio.gather(*(keys.stop() for _, keys in self._known.values()))

    async def verify(self, token: str) -> Bearer:
        """See Tokens."""
        _, claims = _opened(token)
        issuer, keys = self._issuer_of(claims)
        bearer = bearer_of(await signed_claims(token, issuer.settings.algorithms, keys), issuer, self._clock.now())
        if isinstance(bearer, TokenRejected):
            _refuse(bearer.why)
        return bearer

    def _issuer_of(self, claims: Mapping[str, Any]) -> tuple[Issuer, VerifyingKeys]:
        """Find the issuer that the token names, and its keys; whether it is true, its signature will show."""
        issuer = claims.get("iss")
        named = {(issuer, each) for each in audiences(claims) if isinstance(issuer, str) and isinstance(each, str)}
        found = [self._known[name] for name in named if name in self._known]
        if len(found) != 1:
            _refuse("the token is not for this service" if not found else "the token is for more than one app")
        return found[0]


async def signed_claims(token: str, algorithms: Collection[Algorithm], keys: VerifyingKeys) -> dict[str, Any]:
    """Return what *token* says, once its signature holds; WaypostError where it does not."""
    header, _ = _opened(token)
    if header.alg not in algorithms:
        _refuse("the token is signed in a way that is not accepted here")
    key = await keys.find(header.kid, Algorithm(header.alg))
    if key is None:
        _refuse("the token is signed with a key that is not its issuer's")
    try:
        return _claims.decode(_SIGNATURES.decode(token, key, algorithms=[header.alg]))
    except (jwt.PyJWTError, ValueError, RecursionError):
        _refuse("the signature of the token does not hold")


def _opened(token: str) -> tuple[_Header, dict[str, Any]]:
    """Decode a token, before anything of it is believed."""
    parts = token.split(".", 3) if len(token) <= TOKEN_LIMIT else []
    if len(parts) != 3:
        _refuse("this is neither an API key nor a token")
    try:
        return _header.decode(_bytes(parts[0])), _claims.decode(_bytes(parts[1]))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        _refuse("this is neither an API key nor a token")


def _bytes(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("not base64url") from None


def _refuse(why: str) -> NoReturn:
    raise WaypostError(why, ErrorCode.UNAUTHENTICATED)


def _keys_of(issuer: Issuer, clock: Clock, telemetry: Telemetry) -> VerifyingKeys:
    settings = issuer.settings
    if settings.secret is not None:
        return SharedKeys(shared(settings.secret, settings.algorithms))
    from waypost.adapters.jwt.fetching import from_file, over_http  # noqa: PLC0415 - aiohttp, where it is needed

    if settings.jwks_url is not None:
        fetch = partial(over_http, settings.jwks_url, settings.ca_file)
    else:
        assert settings.jwks_file is not None, "the configuration was checked when it was read"
        fetch = partial(from_file, settings.jwks_file)
    name = f"{issuer.app}/{issuer.name}"
    return FetchedKeys(name, fetch, settings.algorithms, settings.jwks_refresh_s, clock, telemetry)
