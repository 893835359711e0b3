"""Templates by the API: written, published, named by a submission, and said to each user in their language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.adapters.rest import service as rest_service
from tests.adapters.rest.service import DEMO, Service, served
from tests.shows import shows
from waypost.bootstrap import features
from waypost.bootstrap.registry import channels_of, families, installed
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.sms.sender import SmsSender
from waypost.channels.sms.settings import SmsSettings
from waypost.config import AppSettings, Config
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import DeviceId, UserId
from waypost.domain.message import Message
from waypost.domain.notification import Lane
from waypost.domain.profile import Profile
from waypost.domain.recipient import Recipient
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.time import later
from waypost.entrypoints.rest.app import build_app
from waypost.features.parts import Ground
from waypost.pipeline.route import Plan, plan
from waypost.ports.feed import NewEntry
from waypost.ports.work import Lease, Settled

pytestmark = pytest.mark.asyncio

WELCOME = "/v1/templates/welcome"
CONTENT: dict[str, Any] = {
    "channels": {
        "default": {"title": "{{ 'hello' | t }}", "body": "{{ 'items' | t: count: items }}"},
        "sms": {"body": "{{ 'hello' | t }}"},
    },
    "variables": {"name": {"required": True}, "items": {"type": "number", "default": 0}},
    "texts": {
        "en": {"hello": "Hello {{ name }}", "items": {"one": "{{ count }} item", "other": "{{ count }} items"}},
        "pt": {"hello": "Olá {{ name }}"},
        "pl": {
            "hello": "Cześć {{ name }}",
            "items": {"one": "{{ count }} rzecz", "few": "{{ count }} rzeczy", "other": "{{ count }} innych"},
        },
    },
}
PLATFORMS = (("fcm", "android"), ("apns", "ios"), ("sms", "phone"))


@pytest.fixture(autouse=True)
def _on_a_file(empty_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on a file of SQLite: what is sent is read from there."""
    monkeypatch.setattr(rest_service, "FILE", empty_file)


async def published(client: httpx.AsyncClient, content: dict[str, Any] = CONTENT, path: str = WELCOME) -> None:
    saved = await client.put(path, json=content)
    assert saved.status_code == 200, saved.text
    assert (await client.post(f"{path}/publish", json={})).json()["published"] == saved.json()["version"]


async def planned(service: Service) -> tuple[Lease, Plan]:
    """What becomes of the next notification, as a worker decides it."""
    grounds = features.complete(service.api.grounds, None, channels_of(installed()), families())
    read = features.facts_reader({name: replace(ground, memory={}) for name, ground in grounds.items()})
    assert read is not None
    lease = await service.work.lease(Lane.NORMAL, 1, later(service.clock.now(), 60_000))
    (item,) = lease.items
    devices = await service.devices.of_user(DEMO, item.notification.user_id)
    (facts,) = await read([item.notification])
    return lease, plan(item, Recipient(devices, facts), routing(grounds), service.clock.now())


def routing(grounds: Mapping[str, Ground]) -> RoutingTable:
    """How a worker routes, and says it."""
    credentials = {channel: (CredentialId(DEMO, channel),) for channel in channels_of(installed()).values()}
    renderers = features.renderers(grounds["templates"].config)
    return RoutingTable(channels_of(installed()), {DEMO: credentials}, RULES, renderers, families())


async def said(service: Service) -> dict[str, Message]:
    """What is sent to each device of the next notification."""
    _, made = await planned(service)
    return {each.device.device_id: each.message for each in made.deliveries}


async def register(service: Service, user: str, *locales: str | None, platform: str = "android") -> None:
    for n, locale in enumerate(locales):
        named = DEMO, UserId(user), DeviceId(f"{user}-{n}"), Platform(platform)
        await service.devices.upsert(Registration(*named, f"token-{user}-{n}", locale=locale), service.clock.now(), 0)


def naming(user: str = "ann", **fields: Any) -> dict[str, Any]:
    return {"user_id": user, "template": {"name": "welcome"}, "variables": {"name": "Ann"}, **fields}


async def accept(client: httpx.AsyncClient, submission: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/notifications", json=submission)
    assert answer.status_code == 202, answer.text
    accepted: dict[str, Any] = answer.json()
    return accepted


@shows("S2-22")
async def test_a_template_is_filled_with_the_variables_of_the_submission() -> None:
    async with served() as (service, client):
        await published(client)
        await register(service, "ann", None)
        await accept(client, naming(variables={"name": "Ann", "items": 1}))
        (message,) = (await said(service)).values()
        assert (message.content.title, message.content.body) == ("Hello Ann", "1 item")


async def test_times_of_who_has_no_zone_are_told_in_the_apps() -> None:
    async with served() as (service, client):
        ground = service.api.grounds["templates"]
        there = replace(ground, config=Config(apps={DEMO: AppSettings(time_zone="Asia/Tokyo")}))
        service.api = replace(service.api, grounds={**service.api.grounds, "templates": there})
        await published(client, {"channels": {"default": {"title": "{{ '2026-11-26T09:30:00Z' | time }}"}}})
        await register(service, "ann", "de")
        await accept(client, naming(variables={}))
        (message,) = (await said(service)).values()
        assert message.content.title == "6:30\u202fPM", (
            "half past nine in London, in the words of the template's language"
        )


@shows("S3-124")
@pytest.mark.parametrize(
    ("asked", "profile", "device", "title"),
    [
        (None, None, None, "Hello Ann"),
        (None, None, "pl", "Cześć Ann"),
        (None, "pt-BR", "pl", "Olá Ann"),
        ("pl_PL", "pt-BR", "en", "Cześć Ann"),
        ("tlh", None, None, "Hello Ann"),
        (None, None, "xx-YY", "Hello Ann"),
    ],
)
async def test_it_is_said_in_the_language_of_the_submission_the_user_or_the_device(
    asked: str | None, profile: str | None, device: str | None, title: str
) -> None:
    """A region falls back to its language, and an unknown locale to the default text."""
    async with served() as (service, client):
        await published(client)
        await register(service, "ann", device)
        if profile is not None:
            await service.stores.profiles.put(DEMO, UserId("ann"), Profile(locale=profile), service.clock.now())
        await accept(client, naming(**({} if asked is None else {"locale": asked})))
        (message,) = (await said(service)).values()
        assert message.content.title == title


async def test_devices_of_one_language_share_one_rendering() -> None:
    async with served() as (service, client):
        await published(client)
        await register(service, "ann", "pl", "pl", "pt", "pt-BR")
        await accept(client, naming())
        messages = await said(service)
        assert messages["ann-0"] is messages["ann-1"]
        assert messages["ann-2"].content == messages["ann-3"].content
        assert [messages[f"ann-{n}"].content.title for n in (0, 2)] == ["Cześć Ann", "Olá Ann"]


async def test_a_template_knows_the_variant() -> None:
    async with served() as (service, client):
        await published(client, CONTENT | {"channels": {"default": {"title": "{{ name }} in {{ variant }}"}}})
        await register(service, "ann", None)
        await accept(client, naming(campaign="spring", variants=[{"name": "b"}]))
        (message,) = (await said(service)).values()
        assert message.content.title == "Ann in b"


async def test_what_was_accepted_says_the_version_of_then() -> None:
    async with served() as (service, client):
        await published(client)
        await register(service, "ann", None)
        await accept(client, naming())
        await published(client, CONTENT | {"channels": {"default": {"title": "New"}}})
        assert (await client.delete(WELCOME)).status_code == 204
        (message,) = (await said(service)).values()
        assert message.content.title == "Hello Ann"
        refused = await client.post("/v1/notifications", json=naming())
        assert (refused.status_code, refused.json()["code"]) == (400, "unknown_template")


@shows("S2-22")
@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"variables": {}}, "missing_variable", "variables.name"),
        ({"variables": {"name": None}}, "missing_variable", "variables.name"),
        ({"variables": {"name": "Ann", "items": "many"}}, "invalid_request", "variables.items"),
        ({"template": {"name": "bye"}}, "unknown_template", "template.name"),
        ({"template": {"name": "welcome", "version": 9}}, "unknown_template", "template.version"),
        ({"title": "Hello"}, "invalid_request", "title"),
        ({"kind": "silent"}, "invalid_request", "template"),
        ({"variables": {"name": "Ann", "deep": [[]] * 1 + [9**30]}}, "invalid_request", "variables"),
        ({"template": None}, "invalid_request", "title"),
        ({"campaign": "c", "variants": [{"name": "a", "title": "x"}]}, "invalid_request", "variants"),
    ],
)
async def test_what_a_template_cannot_say_is_refused_by_name(fields: dict[str, Any], code: str, path: str) -> None:
    async with served() as (_, client):
        await published(client)
        refused = await client.post("/v1/notifications", json=naming(**fields))
        assert (refused.status_code, refused.json()["code"]) == (400, code), refused.text
        assert path in [each["path"] for each in refused.json()["faults"]]
        explained = await client.post("/v1/explain", json=naming(**fields))
        assert (explained.status_code, explained.json()["code"]) == (400, code)


@shows("S2-22")
async def test_a_variable_that_is_missing_when_it_is_sent_fails_that_delivery_by_name() -> None:
    async with served() as (service, client):
        body = "{% if items > 5 %}{{ order.total }}{% endif %}"
        channels = {"default": {"title": "Hi"}, "fcm": {"title": "Hi", "body": body}}
        await published(client, CONTENT | {"channels": channels})
        await register(service, "ann", "en")
        asked = naming(variables={"name": "secret", "items": 9, "order": {"sum": "secret"}})
        accepted = await accept(client, asked)
        lease, made = await planned(service)
        assert made.deliveries == ()
        settled = Settled(made.item.notification, made.changes, made.targets)
        assert await service.work.settle(lease, [settled]) == []
        read = (await client.get(f"/v1/notifications/{accepted['id']}")).json()
        (receipt,) = read["receipts"]
        assert (read["notification"]["status"], receipt["status"]) == ("failed", "failed")
        assert (receipt["code"], receipt["reason"]) == ("missing_variable", "the variable order.total is missing")


async def test_explain_names_what_is_missing() -> None:
    async with served() as (service, client):
        await published(client, CONTENT | {"channels": {"default": {"title": "{{ order.total }}"}}})
        await register(service, "ann", None)
        grounds = features.complete(service.api.grounds, None, channels_of(installed()), families())
        explain = replace(service.api.explain, routing=routing(grounds), facts=features.facts_reader(grounds))
        service.app = build_app(replace(service.api, explain=explain))
        async with service.client() as caller:
            (target,) = (await caller.post("/v1/explain", json=naming())).json()["targets"]
        assert target["fails"] == {"code": "missing_variable", "reason": "the variable order.total is missing"}
        assert (target["rendered"], target["suppressed"]) == (None, None)


async def test_a_preview_shows_each_platform_with_bytes_and_segments(tmp_path: Path) -> None:
    """Rendered by the senders of the app; examples stand for what is not given."""
    async with served() as (service, client):
        long = {"default": {"title": "Hi {{ name }}", "body": "{{ body }}"}, "sms": {"body": "{{ name }} {{ body }}"}}
        variables = {"name": {"required": True, "example": "Ann"}, "body": {"example": "é" * 200}}
        await client.put(WELCOME, json={"channels": long, "variables": variables})
        (tmp_path / "token").write_text("token")
        account = SmsSettings(
            account_sid="AC" + "0" * 32, auth_token_file=str(tmp_path / "token"), from_number="+15550100100"
        )
        told: dict[str, Any] = {"clock": service.clock, "telemetry": service.telemetry}
        fcm = FcmSender(CredentialId.of(DEMO, "fcm"), FcmSettings(service_account_file="none"), **told)
        sms = SmsSender(CredentialId.of(DEMO, "sms"), account, **told)
        grounds = features.complete(service.api.grounds, None, channels_of(installed()), families())
        explain = replace(
            service.api.explain, routing=routing(grounds), senders={each.credential: each for each in (fcm, sms)}
        )
        service.api = replace(service.api, explain=explain, grounds=grounds)
        service.app = build_app(service.api)
        async with service.client() as caller:
            answer = await caller.post(f"{WELCOME}/preview", json={})
            shown = {each["platform"]: each for each in answer.json()["items"]}
            assert shown["android"]["texts"] == {"title": "Hi Ann", "body": "é" * 200}
            assert 400 < shown["android"]["rendered"]["size_bytes"] < shown["android"]["rendered"]["limit_bytes"]
            assert (shown["phone"]["texts"], shown["phone"]["segments"]) == ({"body": "Ann " + "é" * 200}, 2)
            assert shown["ios"]["rendered"] is None, "the app has no account there"
            assert {"web", "email", "feed"} <= shown.keys()
            answer = await caller.post(f"{WELCOME}/preview", json={"variables": {"body": "x" * 5_000}})
            (android,) = (each for each in answer.json()["items"] if each["platform"] == "android")
            assert "limit" in android["rendered"]["refused"], android
            answer = await caller.post(f"{WELCOME}/preview", json={"variables": {"name": None}})
            assert (answer.status_code, answer.json()["code"]) == (400, "missing_variable")
            answer = await caller.post(f"{WELCOME}/preview", json={"time_zone": "Europe/Atlantis"})
            assert answer.status_code == 400


async def test_a_feed_shows_what_was_said_in_its_readers_language() -> None:
    async with served() as (service, client):
        await published(client)
        await accept(client, naming())
        (made,) = await service.accepted()
        await service.stores.feed.add([NewEntry(DEMO, made.user_id, made.id, 0, 1, service.clock.now())])
        await service.stores.profiles.put(DEMO, UserId("ann"), Profile(locale="pl"), service.clock.now())
        (entry,) = (await client.get("/v1/users/ann/feed")).json()["items"]
        assert (entry["title"], entry["body"]) == ("Cześć Ann", "0 innych")


async def test_a_template_that_is_not_there_is_refused_when_a_schedule_or_a_series_is_put() -> None:
    """And not when it is due; one that is there is taken, with the variables that it requires."""
    names: tuple[tuple[str, dict[str, Any], int, str], ...] = (
        ("nothing", {"name": "x"}, 400, "unknown_template"),
        ("welcome", {}, 400, "missing_variable"),
        ("welcome", {"name": "x"}, 201, ""),
    )
    async with served() as (_, client):
        await published(client)
        for template, variables, status, code in names:
            said = {"template": {"name": template}, "variables": variables}
            starts = {"starts": "2027-01-18T12:00"}
            bulk = {"notification": {"template": {"name": template}}, "registry": {}, "variables": variables}
            for path, body in (
                ("schedules/one", starts | {"notification": said | {"user_id": "ann"}}),
                ("schedules/many", starts | {"bulk": bulk}),
                ("series/steps", {"steps": [{"name": "one", "notification": said}]}),
                ("campaigns/sale", bulk),
            ):
                answer = await client.put(f"/v1/{path}", json=body)
                assert (answer.status_code, answer.json().get("code", "")) == (status, code), answer.text
        acts = {act["act"] for act in (await client.get("/v1/audit")).json()["items"]}
        assert "campaign.put" in acts


@pytest.mark.parametrize("common", [{}, {"items": 5}])
async def test_recipients_of_a_list_have_the_templates_variables(common: dict[str, Any]) -> None:
    """Numbers of a list are texts there; what is optional may be missing, and what is required may not."""
    async with served() as (_, client):
        await published(client)
        notification = {"template": {"name": "welcome"}, "variables": common, "locale": "pl"}
        recipients = [{"user_id": "ann", "name": "Ann", "items": 3}, {"user_id": "bo", "name": "Bo", "unknown": 1}]
        job = {"notification": notification, "recipients": recipients}
        made = await client.post("/v1/bulk", json=job)
        assert made.status_code == 202, made.text
        refused = await client.post("/v1/bulk", json=job | {"recipients": ["ann"]})
        assert (refused.status_code, refused.json()["faults"][0]["path"]) == (400, "recipients[0].name")
        whole = {"notification": notification, "registry": {}}
        refused = await client.post("/v1/bulk", json=whole)
        assert (refused.status_code, refused.json()["code"]) == (400, "missing_variable"), refused.text
        assert (await client.post("/v1/bulk", json=whole | {"variables": {"name": "friend"}})).status_code == 202


async def test_a_draft_is_tried_by_its_version() -> None:
    async with served() as (service, client):
        await published(client)
        draft = (await client.put(WELCOME, json=CONTENT | {"channels": {"default": {"title": "Draft"}}})).json()
        await register(service, "ann", None)
        await accept(client, naming(template={"name": "welcome", "version": draft["version"]}))
        assert [each.content.title for each in (await said(service)).values()] == ["Draft"]


def faulty(**fields: Any) -> dict[str, Any]:
    return CONTENT | fields


@pytest.mark.parametrize(
    ("content", "paths"),
    [
        (faulty(channels={"default": {"title": "{{ name"}}), ["channels.default.title"]),
        (faulty(channels={"default": {"title": "{% include 'x' %}"}}), ["channels.default.title"]),
        (faulty(channels={"default": {"title": "{{ name | exec }}"}}), ["channels.default.title"]),
        (faulty(channels={"default": {"title": "{{ 'nothing' | t }}"}}), ["channels.default.title"]),
        (faulty(channels={"default": {"title": "{% render 'x' %}"}}), ["channels.default.title"]),
        (faulty(channels={"default": {"image": "x"}}), ["channels.default"]),
        (faulty(channels={"push": {"title": "x", "html": "<p>"}}), ["channels.push"]),
        (faulty(parts={"foot": "{% if %}"}), ["parts"]),
        (faulty(texts={"en": {"hello": {"one": "x"}, "items": "x"}}), ["texts.en.hello"]),
        (faulty(texts={"en": {"hello": "{{", "items": "x"}}), ["texts.en.hello"]),
    ],
)
async def test_a_draft_that_could_not_be_said_is_refused_by_the_path(content: dict[str, Any], paths: list[str]) -> None:
    async with served() as (_, client):
        refused = await client.put(WELCOME, json=content)
        assert refused.status_code == 400, refused.text
        assert [each["path"] for each in refused.json()["faults"]] == paths
        assert (await client.get("/v1/templates")).json() == {"items": [], "next": None}


async def test_templates_are_listed_read_and_only_an_operator_writes_them() -> None:
    async with served() as (service, client):
        await published(client)
        draft = (await client.put(WELCOME, json=CONTENT)).json()["version"]
        await client.put("/v1/templates/bye", json=CONTENT)
        page = (await client.get("/v1/templates", params={"limit": 1})).json()
        assert [each["name"] for each in page["items"]] == ["bye"]
        page = (await client.get("/v1/templates", params={"limit": 1, "cursor": page["next"]})).json()
        assert page["items"] == [{"name": "welcome", "published": 1, "draft": draft, "retired_at": None}]
        read = (await client.get(WELCOME)).json()
        assert (read["version"], read["state"], read["content"]) == (1, "published", CONTENT)
        assert (await client.get(WELCOME, params={"version": draft})).json()["state"] == "draft"
        assert (await client.get(WELCOME, params={"version": 9})).status_code == 404
        assert [each["version"] for each in (await client.get(f"{WELCOME}/versions")).json()["items"]] == [2, 1]
        async with service.client(service.others.text) as other:
            assert (await other.get(WELCOME)).status_code == 404
        acts = [each["act"] for each in (await client.get("/v1/audit")).json()["items"]]
        assert acts[:2] == ["template.written", "template.written"] and "template.published" in acts


async def test_equal_submissions_by_a_template_are_one_and_other_variables_are_another() -> None:
    async with served() as (_, client):
        await published(client)
        first = await accept(client, naming())
        await published(client)
        again = (await client.post("/v1/notifications", json=naming())).json()
        assert (again["id"], again["deduplicated"]) == (first["id"], True), "whatever is published meanwhile"
        other = await accept(client, naming(variables={"name": "Bo"}))
        assert other["content_hash"] != first["content_hash"] == again["content_hash"]
