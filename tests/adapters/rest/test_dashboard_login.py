"""Logging in to the dashboard: accounts, second factor, sessions, roles, and who tries too often."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pyotp
import pytest
from argon2 import PasswordHasher

from tests.adapters.rest.service import Service, served
from tests.adapters.rest.test_dashboard import _sent, browser
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.bootstrap import features
from waypost.domain.limits import FixedWindow
from waypost.domain.time import HOUR_MS, SECOND_MS
from waypost.entrypoints.limits import Bounds, EntrypointLimits
from waypost.features.dashboard.credentials import new_secret
from waypost.features.dashboard.settings import DashboardSettings
from waypost.stores.sql.accounts import Account
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]

PASSWORD = "correct horse battery"
HASHED = PasswordHasher(time_cost=1, memory_cost=64).hash(PASSWORD)
"""As it is stored, made in less time than the product takes."""
LOGIN = "/dashboard/-/login"


@asynccontextmanager
async def guarded(
    bounds: Bounds = Bounds(),  # noqa: B008 - it is frozen
    **roles: str | None,
) -> AsyncIterator[tuple[Service, httpx.AsyncClient, httpx.AsyncClient]]:
    """A service whose dashboard asks for a login, elsewhere than here, with an account of each name and role."""
    async with served() as (service, caller):
        ground = msgspec.structs.replace(service.api.grounds["dashboard"], settings=DashboardSettings(accounts=True))
        config = msgspec.structs.replace(ground.config, features={"dashboard": ground.settings})
        grounds = dict(service.api.grounds) | {"dashboard": msgspec.structs.replace(ground, config=config)}
        for name, role in roles.items():
            await service.stores.accounts.put(Account(name, role or "viewer", HASHED, None, service.clock.now()))
        limits = EntrypointLimits(bounds, MemoryLimiter(service.clock), service.clock, Silent())
        changes = {"grounds": grounds, "mounts": features.mounts(grounds), "limits": limits}
        async with browser(service, "https://push.example.com", "203.0.113.9", **changes) as there:
            yield service, caller, there


async def _log_in(there: httpx.AsyncClient, name: str, password: str = PASSWORD, **fields: str) -> httpx.Response:
    form = await there.get(LOGIN)
    assert form.status_code == 200
    said = {"csrf": there.cookies["waypost_csrf"], "name": name, "password": password, **fields}
    return await there.post(LOGIN, data=said)


async def test_a_page_asks_who_is_there_and_leads_on_to_itself() -> None:
    async with guarded(ann="operator") as (_, caller, there):
        asked = await there.get("/dashboard/demo/events?q=ann")
        assert asked.headers["location"] == f"{LOGIN}?next=%2Fdashboard%2Fdemo%2Fevents%3Fq%3Dann"
        assert (await there.get("/dashboard/demo/events", headers={"hx-request": "true"})).status_code == 401
        assert (await there.post("/dashboard/demo/failed/retry")).status_code == 401
        for wrong in (("ann", "wrong"), ("nobody", PASSWORD)):
            refused = await _log_in(there, *wrong)
            assert refused.status_code == 401 and "is wrong" in refused.text and "waypost_session" not in there.cookies
        told = await _log_in(there, "ann", next="/dashboard/demo/events?q=ann")
        assert (told.status_code, told.headers["location"]) == (303, "/dashboard/demo/events?q=ann")
        cookie = told.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and "path=/dashboard" in cookie
        page = await there.get(told.headers["location"])
        assert page.status_code == 200 and "ann" in page.text and "Log out" in page.text
        for elsewhere in ("https://evil.example/", "//evil.example", "/dashboard//evil.example", "/dashboard/\r\nx: y"):
            assert (await _log_in(there, "ann", next=elsewhere)).headers["location"] == "/dashboard"
        by = {(each["by"], each["act"]) for each in (await caller.get("/v1/audit")).json()["items"]}
        assert by == {("dashboard:ann", "account.logged_in")}


async def test_a_session_ends_by_logging_out_by_its_time_and_by_order() -> None:
    async with guarded(ann="operator") as (service, _, there):
        page = "/dashboard/demo/overview"
        for ends in ("out", "time", "order"):
            await _log_in(there, "ann")
            kept = {"cookie": f"waypost_session={there.cookies['waypost_session']}"}
            assert (await there.get(page, headers=kept)).status_code == 200
            match ends:
                case "out":
                    assert (await there.post("/dashboard/-/logout", data={"csrf": "guessed"})).status_code == 403
                    await there.post("/dashboard/-/logout", data={"csrf": there.cookies["waypost_csrf"]})
                    assert "waypost_session" not in there.cookies
                case "time":
                    service.clock.advance(12 * HOUR_MS)
                case "order":
                    assert await service.stores.accounts.end_all("ann") == 2, "one of them had ended by its time"
            assert (await there.get(page, headers=kept)).status_code == 303, ends


async def test_a_second_factor_is_asked_for_and_its_code_holds_once() -> None:
    async with guarded() as (service, _, there):
        secret = new_secret()
        await service.stores.accounts.put(Account("ann", "admin", HASHED, secret, service.clock.now()))
        totp = pyotp.TOTP(secret)

        def code() -> str:
            return totp.at(service.clock.now() // SECOND_MS)

        assert (await _log_in(there, "ann")).status_code == 401
        assert (await _log_in(there, "ann", code="000000" if code() != "000000" else "1")).status_code == 401
        spaced = f"{code()[:3]} {code()[3:]}"
        assert (await _log_in(there, "ann", code=spaced)).status_code == 303
        assert (await _log_in(there, "ann", code=code())).status_code == 401, "it was used"
        service.clock.advance(60 * SECOND_MS)
        assert (await _log_in(there, "ann", code=code())).status_code == 303


async def test_who_tries_too_often_has_to_wait() -> None:
    async with guarded(ann="viewer", bob="viewer") as (_, _, there):
        tried = [(await _log_in(there, "ann", "wrong")).status_code for _ in range(11)]
        assert tried == [401] * 10 + [429]
        assert (await _log_in(there, "ann")).status_code == 429, "the right one, too"
        assert (await _log_in(there, "bob")).status_code == 303, "others do not wait"


async def test_a_longer_name_gives_no_more_tries_and_a_form_without_a_token_none() -> None:
    longest, bounds = "a" * 64, Bounds(address=FixedWindow(2, 60 * SECOND_MS))
    async with guarded(bounds, **{longest: "viewer"}) as (_, _, there):
        assert (await _log_in(there, f"{longest}b")).status_code == 401, "it is somebody else's name"
        assert (await _log_in(there, "a\0b")).status_code == 400
        there.cookies.clear()
        said = {"csrf": "-", "name": longest, "password": PASSWORD}
        assert (await there.post(LOGIN, data=said)).status_code == 403
        tried = [(await _log_in(there, f"name-{n}", "wrong")).status_code for n in range(2)]
        assert tried == [401, 429], "a new name each time keeps the machine busy all the same"


ROLES: list[tuple[str, dict[str, int]]] = [
    ("viewer", {"page": 200, "message": 403, "retry": 403, "access": 403, "revoke": 403}),
    ("campaigner", {"page": 200, "message": 403, "retry": 403, "access": 403, "revoke": 403}),
    ("operator", {"page": 200, "message": 200, "retry": 303, "access": 200, "revoke": 403}),
    ("admin", {"page": 200, "message": 200, "retry": 303, "access": 200, "revoke": 303}),
    ("of a newer version", {"page": 303, "message": 401, "retry": 401, "access": 303, "revoke": 401}),
]


async def test_each_role_may_do_so_much() -> None:
    async with guarded() as (service, caller, there):
        one, base = await _sent(caller), "/dashboard/demo"
        for role, wanted in ROLES:
            await service.stores.accounts.put(Account(role, role, HASHED, None, service.clock.now()))
            await _log_in(there, role)
            form: dict[str, Any] = {"csrf": there.cookies["waypost_csrf"], "id": one}
            found = {
                "page": (await there.get(f"{base}/events/{one}")).status_code,
                "message": (await there.post(f"{base}/events/{one}/message", data=form)).status_code,
                "retry": (await there.post(f"{base}/failed/retry", data=form)).status_code,
                "access": (await there.get(f"{base}/access")).status_code,
                "revoke": (await there.post(f"{base}/access/keys/{service.made.prefix}/revoke", data=form)).status_code,
            }
            assert found == wanted, role
            overview = (await there.get(f"{base}/overview")).text
            assert ("Keys and audit" in overview) is (wanted["access"] == 200), role
