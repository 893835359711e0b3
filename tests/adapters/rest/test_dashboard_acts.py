"""What the dashboard does beyond looking: a test send, keys, and the rules asked again, over a whole API."""

from __future__ import annotations

import re
from typing import Any

import httpx
import msgspec
import pytest

from tests.adapters.rest.service import DEMO, Service
from tests.adapters.rest.test_dashboard import METRICS, _posted, _sent, browser, dashboard, let_in
from waypost.bootstrap.registry import channels_of, installed
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import DeviceId, UserId
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.settlement import Sent
from waypost.domain.time import DAY_MS, HOUR_MS, later
from waypost.features.dashboard import gate
from waypost.features.dashboard.operators import Operator, Role
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]


def _with_fcm(service: Service) -> dict[str, Any]:
    """An API of an app with a credential of FCM, which nothing is sent by."""
    settings, credential = FcmSettings(service_account_file="none"), CredentialId.of(DEMO, "fcm")
    sender = FcmSender(credential, settings, clock=service.clock, telemetry=Silent())
    table = RoutingTable(channels_of(installed()), {DEMO: {Channel("fcm"): (credential,)}}, RULES)
    replace = msgspec.structs.replace
    explain = replace(service.api.explain, senders={credential: sender}, routing=table, checks={})
    return {"explain": explain, "intake": replace(service.api.intake, checks={})}


async def _with_devices(service: Service, *names: str) -> None:
    for name in names:
        device = Registration(DEMO, UserId("ann"), DeviceId(name), Platform("android"), f"token-of-{name}")
        await service.devices.upsert(device, service.clock.now(), 0)


async def test_the_story_shows_what_each_rule_says_of_each_target() -> None:
    """As ``explain`` does, of the devices that the user has now."""
    async with dashboard() as (service, caller, _):
        await _with_devices(service, "phone", "tablet")
        one = await _sent(caller, "ann", device_ids=["phone", "lost"])
        nobody = await _sent(caller, "bob")
        async with browser(service, **_with_fcm(service)) as here:
            let_in(service, here)
            story = (await here.get(f"/dashboard/demo/events/{one}")).text
            rows = [" ".join(row.split()) for row in re.sub(r"<[^>]+>", " ", story).split("\n") if row.strip()]
            said = " ".join(rows)
            assert "lost active suppressed device_not_found" in said
            assert "tablet chosen left out not_chosen" in said and "phone credential sent with demo/fcm" in said
            assert "no device now" in (await here.get(f"/dashboard/demo/events/{nobody}")).text


async def test_a_test_goes_to_one_device_after_it_was_said_what_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    async with dashboard() as (service, caller, _):
        await _with_devices(service, "phone")
        async with browser(service, metrics=lambda: METRICS, **_with_fcm(service)) as here:
            let_in(service, here)
            page = "/providers/-/test"
            assert "A test" in (await here.get(f"/dashboard/demo{page}")).text
            form = {"user": "ann", "device": "phone", "platform": "android", "token": "", "title": "Hi", "body": ""}
            wrong: list[tuple[dict[str, str], str]] = [
                ({"device": ""}, "required, or a token"),
                ({"device": "lost"}, "lost: device_not_found"),
                ({"token": "t" * 30}, "stands in place of a user"),
                ({"title": ""}, "needs a title or a body"),
                ({"user": "", "device": "", "token": "{"}, "no JSON"),
            ]
            for change, why in wrong:
                refused = await _posted(here, page, **form | change)
                assert refused.status_code == 400 and why in refused.text, change
            asked = await _posted(here, page, **form)
            for told in ("phone gets it by fcm: ", "of 4,096 bytes", "breaker of fcm is open", "a real notification"):
                assert told in asked.text, asked.text[-1800:]
            assert await service.accepted() == [], "nothing happens before it is confirmed"
            for n in (1, 2):  # saying it again is not taken for a mistake
                sent = await _posted(here, page, **form, sure="yes")
                assert sent.status_code == 303 and len(await service.accepted()) == n
            assert "Sent as a test" in (await here.get(sent.headers["location"])).text
            await service.settled(Sent("projects/p/messages/1"))
            await service.settled(Sent("projects/p/messages/2"))
            assert "projects/p/messages/2" in (await here.get(sent.headers["location"])).text
            by_token = await _posted(here, page, **form | {"user": "", "device": "", "token": "t" * 30})
            assert "gets it by fcm" in by_token.text and "a device without a user" in by_token.text
            assert (await here.post(f"/dashboard/demo{page}", data=form)).status_code == 403, "no token of the form"
            monkeypatch.setattr(gate, "LOCAL", Operator("vera", Role.CAMPAIGNER))
            assert (await _posted(here, page, **form, sure="yes")).status_code == 403
        items = (await caller.get("/v1/audit")).json()["items"]
        assert [(each["act"], each["subject"]) for each in items] == [("provider.tried", "fcm")] * 2


def _key_in(page: httpx.Response) -> str:
    return str(re.findall(r'<code id="key">([^<]+)</code>', page.text)[0])


async def test_an_admin_makes_and_rotates_keys_whose_secrets_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with dashboard() as (service, caller, here):
        form = {"caller": "shop", "scope": ["read", "send:any-user"], "days": "30"}
        await here.get("/dashboard/demo/overview")
        assert (await _posted(here, "/access/keys/-/new", **form)).status_code == 403, "an operator is no admin"
        monkeypatch.setattr(gate, "LOCAL", Operator("ada", Role.ADMIN))
        for change, why in (({"scope": []}, "scopes"), ({"days": "-1"}, "no number"), ({"caller": "a:b"}, "colon")):
            wrong = await _posted(here, "/access/keys/-/new", **form | change)
            assert wrong.status_code == 400 and why in wrong.text, change
        made = await _posted(here, "/access/keys/-/new", **form)
        first = _key_in(made)
        prefix = first[:11]
        assert made.headers["cache-control"] == "no-store"
        stored = await service.keys.find(prefix)
        assert stored is not None and stored.expires_at == later(service.clock.now(), 30 * DAY_MS)
        listed = (await here.get("/dashboard/demo/access")).text
        assert prefix in listed and first not in listed
        assert "Both hold until" in (await here.get(f"/dashboard/demo/access/keys/{prefix}/rotate")).text
        assert (await _posted(here, f"/access/keys/{prefix}/rotate", overlap="1")).status_code == 400
        rotated = await _posted(here, f"/access/keys/{prefix}/rotate", overlap="3600")
        second = _key_in(rotated)
        assert "ends in an hour" in rotated.text
        for text, after_an_hour in ((first, 401), (second, 200)):
            async with service.client(text) as shop:
                assert (await shop.get("/v1/notifications")).status_code == 200
                assert (await shop.get("/v1/keys")).status_code == 403, "it may do what was chosen, and no more"
                service.clock.advance(HOUR_MS)
                assert (await shop.get("/v1/notifications")).status_code == after_an_hour
        items = (await caller.get("/v1/audit")).json()["items"]
        acts = [(each["by"], each["act"], each["subject"]) for each in reversed(items)]
        assert acts == [("dashboard:ada", "key.made", prefix), ("dashboard:ada", "key.rotated", prefix)]
