"""Logging in to the dashboard by OpenID Connect, at a real provider: who gets in as what, and who does not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.adapters.rest.oidc_provider import RunningProvider, agreed, running_provider
from tests.adapters.rest.service import Service, served
from tests.adapters.rest.test_dashboard import browser
from waypost.bootstrap import features
from waypost.bootstrap.reach import reach
from waypost.config import Config
from waypost.domain.time import HOUR_MS, MINUTE_MS, SECOND_MS
from waypost.features.dashboard.settings import DashboardSettings, OidcSettings, RoleClaims
from waypost.telemetry import Event

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]

PUBLIC = "https://push.example.com"
START, LOGIN = "/dashboard/-/oidc", "/dashboard/-/login"
PAGE = "/dashboard/demo/overview"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProvider]:
    """A provider that knows Waypost as a client."""
    with running_provider(tmp_path_factory.mktemp("oidc"), f"{PUBLIC}{START}/callback") as provider:
        yield provider


def settings_for(provider: RunningProvider, folder: Path) -> OidcSettings:
    secret = folder / "client.secret"
    secret.write_text("s3cret/with:signs\n")
    roles = RoleClaims(viewer=("everybody",), operator=("ops", "night shift"), admin=("root",))
    return OidcSettings(issuer=provider.issuer, client_id="waypost", client_secret_file=str(secret), roles=roles)


@asynccontextmanager
async def guarded(settings: OidcSettings) -> AsyncIterator[tuple[Service, httpx.AsyncClient, httpx.AsyncClient]]:
    """A service whose dashboard has people log in at the provider, now, and a browser elsewhere."""
    async with served() as (service, caller):
        service.clock.advance(int(time.time() * SECOND_MS) - service.clock.now())
        ground = service.api.grounds["dashboard"]
        chosen = DashboardSettings(oidc=settings)
        rest = msgspec.structs.replace(ground.config.rest, public_url=PUBLIC)
        config = msgspec.structs.replace(ground.config, features={"dashboard": chosen}, rest=rest)
        ground = msgspec.structs.replace(ground, settings=chosen, config=config)
        grounds = dict(service.api.grounds) | {"dashboard": ground}
        changes = {"grounds": grounds, "mounts": features.mounts(grounds)}
        async with browser(service, PUBLIC, "203.0.113.9", **changes) as there:
            yield service, caller, there


def _config(settings: OidcSettings) -> Config:
    return Config(apps={}, features={"dashboard": DashboardSettings(oidc=settings)})


async def _gone(there: httpx.AsyncClient, onward: str = "") -> str:
    """Begin to log in, and return where the provider is asked."""
    led = await there.get(START, params={"next": onward})
    assert led.status_code == 303, led.text
    return led.headers["location"]


async def _back(there: httpx.AsyncClient, url: httpx.URL) -> httpx.Response:
    """Come back as a browser does: by a link from elsewhere."""
    return await there.get(url, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})


async def test_somebody_logs_in_with_the_role_that_the_claim_gives_at_that_time(
    provider: RunningProvider, tmp_path: Path
) -> None:
    async with guarded(settings_for(provider, tmp_path)) as (service, caller, there):
        asked = await there.get(PAGE)
        form = await there.get(asked.headers["location"])
        assert "Log in at" in form.text and "Password" not in form.text, "there are no accounts of our own"
        said = {"csrf": there.cookies["waypost_csrf"], "name": "ann", "password": "any"}
        assert (await there.post(LOGIN, data=said)).status_code == 403
        provider.know("ann", groups=["everybody", "night shift"], email="ann@example.com", email_verified=True)
        led = await _back(there, await agreed(await _gone(there, "/dashboard/demo/events?q=ann"), "ann"))
        assert (led.status_code, led.headers["location"]) == (303, "/dashboard/demo/events?q=ann"), led.text
        page = await there.get(PAGE)
        assert page.status_code == 200 and "oidc:ann@example.com" in page.text
        assert (await there.get("/dashboard/demo/access")).status_code == 200, "an operator"
        by = {(each["by"], each["act"]) for each in (await caller.get("/v1/audit")).json()["items"]}
        assert by == {("dashboard:oidc:ann@example.com", "account.logged_in")}

        provider.know("ann", groups=["everybody"], email="ann@example.com", email_verified=True)
        assert (await there.get("/dashboard/demo/access")).status_code == 200, "until the next login"
        for elsewhere in ("https://evil.example/", "//evil.example"):
            led = await _back(there, await agreed(await _gone(there, elsewhere), "ann"))
            assert led.headers["location"] == "/dashboard"
        assert (await there.get("/dashboard/demo/access")).status_code == 403, "a viewer"

        kept = {"cookie": f"waypost_session={there.cookies['waypost_session']}"}
        await there.post("/dashboard/-/logout", data={"csrf": there.cookies["waypost_csrf"]})
        assert (await there.get(PAGE, headers=kept)).status_code == 303, "logged out"
        await _back(there, await agreed(await _gone(there), "ann"))
        assert (await there.get(PAGE)).status_code == 200
        assert await service.stores.accounts.end_all("oidc:ann@example.com") == 3, "by order, in every browser"
        assert (await there.get(PAGE)).status_code == 303
        await _back(there, await agreed(await _gone(there), "ann"))
        provider.know("ann", groups=["visitors"], email="ann@example.com", email_verified=True)
        assert (await _back(there, await agreed(await _gone(there), "ann"))).status_code == 403
        assert await _refused(caller) == ["oidc:ann@example.com"], "who has been here is named on record"
        service.clock.advance(12 * HOUR_MS)
        assert (await there.get(PAGE)).status_code == 303, "by its time"


async def test_whoever_comes_back_with_what_is_not_of_this_login_is_refused(
    provider: RunningProvider, tmp_path: Path
) -> None:
    provider.know("bob", groups=["root"])
    tries = 0
    async with guarded(settings_for(provider, tmp_path)) as (service, caller, there):

        async def refused(url: httpx.URL, why: str, status: int = 401) -> None:
            nonlocal tries
            tries += 1
            answer = await _back(there, url)
            assert (answer.status_code, why in answer.text) == (status, True), answer.text
            assert "waypost_session" not in there.cookies

        good = await agreed(await _gone(there), "bob")
        await refused(good.copy_set_param("state", "guessed"), "another login")
        await refused(good.copy_set_param("iss", "https://evil.example"), "another provider")
        await refused(good.copy_set_param("code", "guessed"), "answered 400")
        asked = httpx.URL(await _gone(there))
        await refused(good, "another login")
        await refused(await agreed(str(asked.copy_set_param("nonce", "n")), "bob"), "of another login")
        challenge = asked.copy_set_param("code_challenge", "A" * 43)
        await refused(await agreed(str(challenge), "bob"), "answered 400")
        denied = good.copy_remove_param("code").copy_set_param("state", asked.params["state"])
        await refused(denied.copy_set_param("error", "access_denied"), "did not log you in: access_denied")
        provider.know("eve", groups=["visitors"])
        await refused(await agreed(await _gone(there), "eve"), "nothing in your `groups`", 403)
        late = await agreed(await _gone(there), "bob")
        service.clock.advance(5 * MINUTE_MS)
        await refused(late, "the ID token has expired")
        service.clock.advance(5 * MINUTE_MS)
        await refused(late, "took too long")
        sealed = there.cookies["waypost_oidc"]
        there.cookies.clear()
        await refused(late, "no login began")
        there.cookies.set("waypost_oidc", sealed[:-4] + "AAAA")
        await refused(late, "no login began")
        assert await _refused(caller) == ["(unknown)"] * tries
        assert {fields["why"] for event, fields in service.telemetry.events if event is Event.LOGIN_REFUSED} == {
            "provider"
        }


async def _refused(caller: httpx.AsyncClient) -> list[str]:
    """Whom failed logins were for, as is on record."""
    found = await caller.get("/v1/audit", params={"act": "account.refused", "limit": 200})
    return [each["subject"] for each in found.json()["items"]]


async def test_a_provider_that_is_away_is_said_as_such(provider: RunningProvider, tmp_path: Path) -> None:
    settings = settings_for(provider, tmp_path)
    (found,) = await reach(_config(settings))
    assert found.problem is None and provider.issuer in found.what
    for wrong, why in (("http://127.0.0.1:1", "cannot be reached"), (f"{provider.issuer}/", "another issuer")):
        away = msgspec.structs.replace(settings, issuer=wrong)
        (found,) = await reach(_config(away))
        assert why in str(found.problem), "as `check-config --connect` and `doctor` say"
    async with guarded(away) as (_, _, there):
        answer = await there.get(START)
        assert answer.status_code == 503 and why in answer.text
