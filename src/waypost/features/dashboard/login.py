"""Logging in and out: name, password and the code of the second factor for a session that can be ended."""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import parse_qsl, urlencode

from litestar import Response, get, post
from litestar.datastructures import Cookie
from msgspec import Struct

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.domain.time import HOUR_MS, later
from waypost.entrypoints.limits import RateLimited
from waypost.entrypoints.rest.serving import vouch_for
from waypost.features.dashboard.credentials import Checking, step_of, token_hash
from waypost.features.dashboard.desk import FOLDER, TOKEN, Asked, answer_html, redirect, site_of
from waypost.features.dashboard.foreign import new_form_token, refuse_foreign, refuse_forged, refuse_nul
from waypost.features.dashboard.logins import Why, note_login, note_refused, visit_of
from waypost.features.dashboard.operators import UNKNOWN, Operator, Role
from waypost.features.dashboard.rendering import render
from waypost.features.dashboard.settings import DashboardSettings
from waypost.features.dashboard.site import Site
from waypost.stores.sql.accounts import Account, NewSession, SqlAccounts

SESSION: Final = "waypost_session"
LOGIN: Final = f"{FOLDER}/-/login"
_SESSION_MS: Final = 12 * HOUR_MS
_TOKEN_BYTES: Final = 32
_WRONG: Final = "The name, password or code is wrong. Each code works once: wait for the next one."


class NotLoggedIn(WaypostError):
    """The error that nobody is logged in."""

    code = ErrorCode.UNAUTHENTICATED


class AccountGate:
    """The gate where people log in with accounts."""

    async def enter(self, request: Asked) -> Response[bytes] | None:
        """See Gate: no address lets anybody in."""
        return None

    async def operator(self, request: Asked) -> Operator:
        """See Gate."""
        token, site = request.cookies.get(SESSION), site_of(request)
        account = None if not token else await _accounts(site).logged_in(token_hash(token), site.api.clock.now())
        if account is None or account.role not in set(Role) or not _may_still(account, site.ground.settings):
            raise NotLoggedIn("log in first")
        vouch_for(request.scope)
        return Operator(account.name, Role(account.role), can_log_out=True)


class Entered(Struct, frozen=True):
    """Entries of the form: name, password, code, and where to go on."""

    name: str
    password: str
    code: str
    onward: str
    csrf: str


@get(LOGIN)
async def show_login(request: Asked) -> Response[bytes]:
    """Show the form."""
    return _form(request, request.query_params.get("next", ""))


@post(LOGIN, status_code=200)
async def log_in(request: Asked) -> Response[bytes]:
    """Begin a session, or say that something is wrong and not what."""
    refuse_foreign(request)
    site, entered = site_of(request), await _entered(request)
    if not site.ground.settings.accounts:
        raise WaypostError("people log in by the provider alone", ErrorCode.FORBIDDEN)
    refuse_forged(request, entered.csrf)
    await _count(request, entered.name)
    account = await _accounts(site).find(entered.name)
    checking: Checking = site.memory.setdefault(Checking, Checking())
    why = Why.PASSWORD
    if await checking.is_password(account, entered.password):
        assert account is not None
        if await _has_second_factor(site, account, entered):
            await note_login(request, account.name)
            session, cookies = begun(site, account.name)
            await _accounts(site).begin(session)
            return redirect(onward_of(entered.onward), cookies)
        why = Why.SECOND_FACTOR
    await note_refused(request, why, entered.name if account else UNKNOWN)
    return _form(request, entered.onward, _WRONG, 401)


async def _count(request: Asked, name: str) -> None:
    """Count a try: each name has tries of its own, and each takes a tenth of a second; RateLimited past them."""
    site, visit = site_of(request), visit_of(request)
    try:
        await site.api.limits.count_unvouched(visit)
        await site.api.limits.count_login(visit, name)
    except RateLimited:
        is_known = await _accounts(site).find(name) is not None
        await note_refused(request, Why.TOO_OFTEN, name if is_known else UNKNOWN)
        raise


@post(f"{FOLDER}/-/logout", status_code=200)
async def log_out(request: Asked) -> Response[bytes]:
    """End the session."""
    refuse_foreign(request)
    site, token = site_of(request), request.cookies.get(SESSION)
    refuse_forged(request, (await _entered(request)).csrf)
    if token:
        await _accounts(site).end(token_hash(token))
    return redirect(LOGIN, [site.cookie(SESSION, "", max_age=0)])


def begun(site: Site, name: str) -> tuple[NewSession, list[Cookie]]:
    """Make a session that begins now, and the cookies that the browser keeps of it."""
    token, now = secrets.token_urlsafe(_TOKEN_BYTES), site.api.clock.now()
    cookie = site.cookie(SESSION, token, max_age=_SESSION_MS // 1_000, samesite="lax")
    return NewSession(token_hash(token), name, now, later(now, _SESSION_MS)), [cookie, new_form_token(site)]


def onward_of(address: str) -> str:
    """Return where to go after the login: a page of ours and nowhere else."""
    is_ours = address.startswith(f"{FOLDER}/") and "//" not in address and address.isascii() and address.isprintable()
    return address if is_ours else FOLDER


def login_address(request: Asked) -> str:
    """Return the address of the form that leads back to what was asked for."""
    query = request.scope["query_string"].decode("latin-1")
    onward = request.url.path + (f"?{query}" if query else "")
    return f"{LOGIN}?{urlencode({'next': onward})}"


def _may_still(account: Account, settings: DashboardSettings) -> bool:
    """Tell whether people log in as this one did."""
    return settings.accounts if account.password else settings.oidc is not None


async def _has_second_factor(site: Site, account: Account, entered: Entered) -> bool:
    """Tell whether the code is right, and was not used before; without a second factor, none is asked for."""
    if account.totp is None:
        return True
    step = step_of(account.totp, entered.code, site.api.clock.now())
    return step is not None and await _accounts(site).use_step(account.name, step)


async def _entered(request: Asked) -> Entered:
    body = await request.body()
    refuse_nul(request, body)
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise WaypostError("this is no form", ErrorCode.INVALID_REQUEST) from None
    code = "".join(each for each in fields.get("code", "") if each.isascii() and each.isdigit())
    name, password = fields.get("name", ""), fields.get("password", "")
    return Entered(name, password, code, fields.get("next", ""), fields.get("csrf", ""))


def _form(request: Asked, onward: str, wrong: str | None = None, status: int = 200) -> Response[bytes]:
    token = request.cookies.get(TOKEN) or secrets.token_urlsafe(24)
    settings: DashboardSettings = site_of(request).ground.settings
    values = {"csrf": token, "onward": onward, "wrong": wrong, "settings": settings}
    response = answer_html(render("login.html", values), status)
    if not request.cookies.get(TOKEN):
        response.cookies.append(site_of(request).cookie(TOKEN, token))
    return response


def _accounts(site: Site) -> SqlAccounts:
    accounts: SqlAccounts = site.ground.store.accounts
    return accounts


HANDLERS: Final = (show_login, log_in, log_out)
