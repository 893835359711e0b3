"""Logging in by OpenID Connect: to the provider with PKCE (RFC 7636), and back with a code for a session."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from litestar import Response, get
from msgspec import Struct

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.domain.time import MINUTE_MS, Instant, later
from waypost.features.dashboard.desk import FOLDER, Asked, redirect, site_of
from waypost.features.dashboard.foreign import refuse_foreign
from waypost.features.dashboard.login import begun, onward_of
from waypost.features.dashboard.logins import Why, note_login, note_refused, visit_of
from waypost.features.dashboard.oidc import LoginRefused, Provider, name_of, role_of
from waypost.features.dashboard.operators import UNKNOWN
from waypost.features.dashboard.settings import client_secret
from waypost.features.dashboard.site import Site

FLOW: Final = "waypost_oidc"
START: Final = f"{FOLDER}/-/oidc"
CALLBACK: Final = f"{START}/callback"
_FLOW_MS: Final = 10 * MINUTE_MS
_ERROR_LIMIT: Final = 40
_REFUSED: Final = frozenset({ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN})


class Flow(Struct, frozen=True):
    """A login that began in this browser: a signed cookie keeps it, so that any process may end it."""

    seed: str
    """The secret that state, nonce and verifier are made from."""
    onward: str
    ends_at: Instant

    def made(self, what: str) -> str:
        """Make one of them; none tells another."""
        return _text(hmac.digest(self.seed.encode(), what.encode(), "sha256"))

    @property
    def challenge(self) -> str:
        """The challenge of PKCE (S256)."""
        return _text(hashlib.sha256(self.made("verifier").encode()).digest())


@get(START)
async def go_to_provider(request: Asked) -> Response[bytes]:
    """Lead to the provider."""
    refuse_foreign(request)
    site = site_of(request)
    provider = _provider(site)
    metadata = await provider.known()
    onward = onward_of(request.query_params.get("next", ""))
    flow = Flow(secrets.token_urlsafe(32), onward, later(site.api.clock.now(), _FLOW_MS))
    asked = {
        "response_type": "code",
        "client_id": provider.settings.client_id,
        "redirect_uri": _callback(site),
        "scope": " ".join(provider.settings.scopes),
        "state": flow.made("state"),
        "nonce": flow.made("nonce"),
        "code_challenge": flow.challenge,
        "code_challenge_method": "S256",
    }
    to = metadata.authorization_endpoint
    cookie = site.cookie(FLOW, _sealed(flow, _key(provider)), max_age=_FLOW_MS // 1_000, samesite="lax")
    return redirect(f"{to}{'&' if '?' in to else '?'}{urlencode(asked)}", [cookie])


@get(CALLBACK)
async def come_back(request: Asked) -> Response[bytes]:
    """Begin a session of whom the provider vouches for; LoginRefused, or Forbidden without a role."""
    site = site_of(request)
    await site.api.limits.count_unvouched(visit_of(request))
    name = None
    try:
        flow, claims = await _claimed(request, site)
        name = name_of(claims)
        role = role_of(claims, site.ground.settings.oidc)
    except WaypostError as refused:
        if refused.code in _REFUSED:
            is_known = name is not None and await site.ground.store.accounts.find(name) is not None
            await note_refused(request, Why.PROVIDER, name if name and is_known else UNKNOWN)
        raise
    await note_login(request, name)
    session, cookies = begun(site, name)
    await site.ground.store.accounts.enter(role, session)
    return redirect(flow.onward, [*cookies, site.cookie(FLOW, "", max_age=0, samesite="lax")])


async def _claimed(request: Asked, site: Site) -> tuple[Flow, Mapping[str, Any]]:
    """Return the login that this ends, and what the provider says of the person."""
    provider = _provider(site)
    flow = _opened(request.cookies.get(FLOW, ""), _key(provider), site.api.clock.now())
    said = request.query_params
    if not hmac.compare_digest(said.get("state", "").encode(), flow.made("state").encode()):
        raise LoginRefused("this is the answer to another login: log in again")
    if said.get("iss", provider.settings.issuer) != provider.settings.issuer:
        raise LoginRefused("this is the answer of another provider")
    if "code" not in said:
        raise LoginRefused(f"the provider did not log you in: {said.get('error', 'no reason')[:_ERROR_LIMIT]}")
    return flow, await provider.claims(said["code"], flow.made("verifier"), _callback(site), flow.made("nonce"))


def _provider(site: Site) -> Provider:
    provider: Provider | None = site.memory.get(Provider)
    if provider is None:
        provider = Provider(site.ground.settings.oidc, site.api.clock, site.ground.telemetry)
        site.memory[Provider] = provider
    return provider


def _callback(site: Site) -> str:
    return f"{site.ground.config.rest.public_url}{CALLBACK}"


def _key(provider: Provider) -> bytes:
    """Make the key of the cookie from a secret that every process has."""
    return hashlib.sha256(b"waypost dashboard login " + client_secret(provider.settings).encode()).digest()


def _sealed(flow: Flow, key: bytes) -> str:
    content = msgspec.json.encode(flow)
    return f"{_text(content)}.{_text(hmac.digest(key, content, 'sha256'))}"


def _opened(cookie: str, key: bytes, now: Instant) -> Flow:
    """Read the cookie; LoginRefused where it is missing, not ours, or too old."""
    try:
        content, seal = (base64.urlsafe_b64decode(f"{part}==") for part in cookie.split("."))
        if not hmac.compare_digest(seal, hmac.digest(key, content, "sha256")):
            raise ValueError("not ours")
        flow = msgspec.json.decode(content, type=Flow)
    except (ValueError, msgspec.MsgspecError):
        raise LoginRefused("no login began in this browser: log in again") from None
    if now >= flow.ends_at:
        raise LoginRefused("this login took too long: log in again")
    return flow


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


HANDLERS: Final = (go_to_provider, come_back)
