"""Logging in to the dashboard: accounts, second factor, sessions, roles, and who tries too often."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import httpx
import msgspec
import pyotp
import pytest
from argon2 import PasswordHasher, low_level

from tests.adapters.rest.service import Service, served
from tests.adapters.rest.test_dashboard import _sent, browser
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.bootstrap import features
from waypost.domain.limits import FixedWindow
from waypost.domain.time import HOUR_MS, SECOND_MS
from waypost.entrypoints.limits import Bounds, EntrypointLimits
from waypost.features.dashboard import credentials
from waypost.features.dashboard.credentials import Checking, hash_of, new_secret
from waypost.features.dashboard.settings import DashboardSettings
from waypost.stores.sql.accounts import Account, NewSession
from waypost.telemetry import Event, Metric, Silent

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
        followed = await there.get("/dashboard/demo/events", headers={"accept": "text/event-stream"})
        assert (followed.status_code, followed.text) == (200, "event: gone\ndata:\n\n"), "the page loads itself anew"
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
        by = {each["by"] for each in (await caller.get("/v1/audit?act=account.logged_in")).json()["items"]}
        assert by == {"dashboard:ann"}


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


async def test_logins_that_failed_are_on_record_with_the_account_if_there_is_one_and_never_what_was_typed() -> None:
    async with guarded(ann="viewer") as (service, caller, there):
        await service.stores.accounts.put(Account("bob", "admin", HASHED, new_secret(), service.clock.now()))
        for name, password in (("ann", "my-other-password"), ("hunter2", "ann"), ("bob", PASSWORD)):
            assert (await _log_in(there, name, password)).status_code == 401
        assert await _refused(caller) == ["bob", "(unknown)", "ann"]
        told = [fields for event, fields in service.telemetry.events if event is Event.LOGIN_REFUSED]
        assert told == [
            {"why": "password", "account": "ann", "origin": "203.0.113.9"},
            {"why": "password", "account": "(unknown)", "origin": "203.0.113.9"},
            {"why": "second_factor", "account": "bob", "origin": "203.0.113.9"},
        ]
        assert (Metric.REQUESTS, {"route": LOGIN, "status": "401"}) in service.telemetry.counts
        said = (await caller.get("/v1/audit")).text + str(service.telemetry.events)
        assert [typed for typed in ("my-other-password", "hunter2", PASSWORD) if typed in said] == []


async def test_of_many_failed_logins_of_one_address_the_first_are_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is an account or not: what is written must not tell, by its time, whose names are accounts."""
    monkeypatch.setattr(credentials, "_nobody", lambda: HASHED)  # in less time than the product takes
    async with guarded(ann="viewer") as (service, caller, there):
        for n in range(12):
            await _log_in(there, "ann", f"wrong-{n}")
        assert await _refused(caller) == ["ann"] * 11, "ten tries, and once that there were too many"
        for n in range(95):
            await _log_in(there, f"name-{n}", "wrong")
        assert (await _refused(caller)).count("(unknown)") == 90
        await service.stores.accounts.put(Account("bob", "viewer", HASHED, None, service.clock.now()))
        assert (await _log_in(there, "bob", "wrong")).status_code == 401
        assert "bob" not in await _refused(caller)
        service.clock.advance(900 * SECOND_MS)
        assert (await _log_in(there, "bob", "wrong")).status_code == 401
        assert (await _refused(caller))[0] == "bob", "in the next quarter of an hour"


async def _refused(caller: httpx.AsyncClient) -> list[str]:
    """Whom failed logins were for, the newest first."""
    found = await caller.get("/v1/audit", params={"act": "account.refused", "limit": 200})
    assert {each["by"].removeprefix("dashboard:") == each["subject"] for each in found.json()["items"]} == {True}
    return [each["subject"] for each in found.json()["items"]]


async def test_a_login_makes_the_token_of_forms_anew() -> None:
    """Somebody may have planted the one before."""
    async with guarded(ann="operator") as (_, _, there):
        await there.get(LOGIN)
        before = there.cookies["waypost_csrf"]
        await _log_in(there, "ann")
        assert there.cookies["waypost_csrf"] != before
        assert (await there.post("/dashboard/-/logout", data={"csrf": before})).status_code == 403
        page = await there.get("/dashboard/demo/overview")
        assert there.cookies["waypost_csrf"] in page.text


async def test_each_name_takes_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account, none, and one for which a provider alone vouches: one check of the same size, and nothing beside."""
    work: list[str] = []

    def verify(hashed: bytes, secret: bytes, type: low_level.Type) -> bool:
        work.append(hashed.decode().rsplit("$", 2)[0])
        return checks(hashed, secret, type)

    checks, made = low_level.verify_secret, Mock(wraps=low_level.hash_secret)
    async with guarded() as (service, _, there):
        now = service.clock.now()
        await service.stores.accounts.put(Account("ann", "viewer", hash_of(PASSWORD), None, now))
        await service.stores.accounts.enter("viewer", NewSession(b"t" * 32, "oidc:ann", now, now))
        await Checking().is_password(None, "any")
        monkeypatch.setattr("argon2._password_hasher.verify_secret", verify)
        monkeypatch.setattr("argon2._password_hasher.hash_secret", made)
        for name in ("ann", "nobody", "oidc:ann"):
            assert (await _log_in(there, name, "wrong")).status_code == 401
    assert len(work) == 3 and len(set(work)) == 1 and work[0].startswith("$argon2id$"), work
    assert not made.called


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
