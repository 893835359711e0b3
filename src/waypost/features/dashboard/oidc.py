"""A provider of OpenID Connect: what it says of itself, its ID tokens, and what they say of a person."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from waypost.adapters.jwt.claims import Times, audiences
from waypost.adapters.jwt.fetching import over_http
from waypost.adapters.jwt.key_set import parsed
from waypost.adapters.jwt.key_source import FetchedKeys
from waypost.adapters.jwt.settings import Algorithm, is_safe
from waypost.adapters.jwt.tokens import signed_claims
from waypost.domain.errors import ErrorCode, Unavailable, WaypostError
from waypost.domain.time import SECOND_MS, Instant
from waypost.features.dashboard.operators import Role
from waypost.features.dashboard.settings import OidcSettings, client_secret
from waypost.ports.clock import Clock
from waypost.runtime.clock import SystemClock
from waypost.telemetry import Silent, Telemetry

BY_PROVIDER: Final = "oidc:"
"""The beginning of the names of people for whom the provider vouches; no account of ours has a colon in its name."""
ALGORITHMS: Final = tuple(each for each in Algorithm if not each.is_shared)
_BELIEVED_S: Final = 3_600.0
_KEYS_REFRESH_S: Final = 300.0
_LEEWAY_S: Final = 30.0
_NAME_LIMIT: Final = 100


class LoginRefused(WaypostError):
    """The error that somebody came back from the provider with what is not believed."""

    code = ErrorCode.UNAUTHENTICATED


class Metadata(Struct, frozen=True):
    """The parts of a discovery document that are read (OpenID Connect Discovery 1.0 section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Answer(Struct, frozen=True):
    id_token: str


class Provider:
    """The provider of the configuration."""

    def __init__(self, settings: OidcSettings, clock: Clock, telemetry: Telemetry) -> None:
        self.settings = settings
        self._clock = clock
        self._metadata: Metadata | None = None
        self._had_s = 0.0
        self._keys = FetchedKeys("dashboard.oidc", self.key_set, ALGORITHMS, _KEYS_REFRESH_S, clock, telemetry)

    async def metadata(self) -> Metadata:
        """Return what the provider says of itself, asked for once an hour; OSError where it says nothing usable."""
        now_s = self._clock.monotonic()
        if self._metadata is None or now_s - self._had_s >= _BELIEVED_S:
            url = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            self._metadata, self._had_s = metadata_of(await over_http(url, None), self.settings.issuer), now_s
        return self._metadata

    async def key_set(self) -> bytes:
        """Fetch its keys."""
        return await over_http((await self.metadata()).jwks_uri, None)

    async def known(self) -> Metadata:
        """Return what the provider says of itself; Unavailable where it is away."""
        try:
            return await self.metadata()
        except OSError as away:
            why = f"the provider of logins {away}; `waypost doctor` looks at it"
            raise Unavailable(why, ErrorCode.ISSUER_AWAY, 10) from None

    async def claims(self, code: str, verifier: str, redirect_uri: str, nonce: str) -> Mapping[str, Any]:
        """Exchange *code* for an ID token, and return what it says; LoginRefused where it is not believed."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        metadata = await self.known()
        headers = self._authenticate(metadata, form)
        try:
            answer = await over_http(metadata.token_endpoint, None, form, headers)
            token = msgspec.json.decode(answer, type=_Answer).id_token
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as refused:
            why = str(refused) if isinstance(refused, OSError) else "sent no ID token"
            raise LoginRefused(f"the provider does not confirm this login: it {why}") from None
        said = await signed_claims(token, ALGORITHMS, self._keys)
        why_not = misfit(said, self.settings, nonce, self._clock.now())
        if why_not is not None:
            raise LoginRefused(why_not)
        return said

    def _authenticate(self, metadata: Metadata, form: dict[str, str]) -> Mapping[str, str]:
        """Say who asks: by the header, as is the rule (RFC 6749 section 2.3.1), else in the form."""
        name, secret = self.settings.client_id, client_secret(self.settings)
        methods = metadata.token_endpoint_auth_methods_supported
        if "client_secret_basic" not in methods and "client_secret_post" in methods:
            form.update(client_id=name, client_secret=secret)
            return {}
        pair = f"{quote(name, safe='')}:{quote(secret, safe='')}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


async def look(settings: OidcSettings) -> str:
    """Fetch what a login needs, and say what is there; OSError where it is not."""
    provider = Provider(settings, SystemClock(), Silent())
    try:
        keys = parsed(await provider.key_set(), ALGORITHMS)
    except ValueError as wrong:
        raise OSError(f"has no usable keys: {wrong}") from None
    if not keys:
        raise OSError("has no key that signs in a way accepted here")
    return f"{settings.issuer}: its discovery document and keys can be used"


def metadata_of(document: bytes, issuer: str) -> Metadata:
    """Read a discovery document; OSError in our words where it is none, or another provider's."""
    try:
        found = msgspec.json.decode(document, type=Metadata)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise OSError("answers with no discovery document") from None
    if found.issuer != issuer:
        raise OSError("says that it is another issuer than the configuration does")
    for url in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
        if not is_safe(url):
            raise OSError("names an address that is neither https nor http on the loopback")
    return found


def misfit(claims: Mapping[str, Any], settings: OidcSettings, nonce: str, now: Instant) -> str | None:
    """Say why an ID token, whose signature holds, is not for this login (OpenID Connect Core 1.0 section 3.1.3.7)."""
    audience, now_s = audiences(claims), now / SECOND_MS
    party = claims.get("azp", settings.client_id if len(audience) == 1 else None)
    if claims.get("iss") != settings.issuer or settings.client_id not in audience or party != settings.client_id:
        return "the ID token is not for this dashboard"
    try:
        times = msgspec.convert(claims, Times)
    except msgspec.ValidationError:
        return "the ID token needs `exp` and `iat`"
    if now_s >= times.exp + _LEEWAY_S:
        return "the ID token has expired: log in again"
    if max(times.iat, times.nbf) > now_s + _LEEWAY_S:
        return "the ID token is not valid yet: the clocks differ"
    said = claims.get("nonce")
    if not isinstance(said, str) or not compare_digest(said.encode(), nonce.encode()):
        return "the ID token is of another login"
    return None


def name_of(claims: Mapping[str, Any]) -> str:
    """Name a person by mailbox, name or id at the provider; LoginRefused where there is no usable one."""
    mailbox = claims.get("email") if claims.get("email_verified", True) is True else None
    for said in (mailbox, claims.get("preferred_username"), claims.get("sub")):
        if isinstance(said, str) and 0 < len(said) <= _NAME_LIMIT and said.isprintable():
            return f"{BY_PROVIDER}{said}"
    raise LoginRefused("the ID token names nobody: it needs `email`, `preferred_username` or `sub`")


def role_of(claims: Mapping[str, Any], settings: OidcSettings) -> Role:
    """Find the role that may most of those which the claim gives; Forbidden where it gives none."""
    said = claims.get(settings.role_claim)
    values = said if isinstance(said, list) else [said]
    for role in (Role.ADMIN, Role.OPERATOR, Role.CAMPAIGNER, Role.VIEWER):
        if any(each in values for each in getattr(settings.roles, role)):
            return role
    why = f"you are known, but nothing in your `{settings.role_claim}` at the provider gives you a role here"
    raise WaypostError(f"{why}: ask who runs Waypost", ErrorCode.FORBIDDEN)
