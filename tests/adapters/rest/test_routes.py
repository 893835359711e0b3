"""The routes around a notification's life: look up, list, cancel, replay, dead letters, devices, explain, health."""

from __future__ import annotations

import json

import httpx
import msgspec
import pytest

from tests.adapters.rest.service import AUTH, DEFAULTS, DEMO, P256DH, Service, served, shown
from tests.shows import shows
from waypost.domain.channel import Channel
from waypost.domain.delivery import FailureClass, Target
from waypost.domain.device import Platform
from waypost.domain.errors import Fault
from waypost.domain.ids import DeviceId, UserId, parse_id
from waypost.domain.notification import Lane
from waypost.domain.settlement import Change, Dead
from waypost.domain.time import later
from waypost.entrypoints.rest.app import build_app
from waypost.ports.work import Settled
from waypost.runtime.listening import Listen

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

UNKNOWN = "01a3185c-5000-7000-8000-00000000ffff"


async def submitted(client: httpx.AsyncClient, user_id: str = "user-1", **fields: object) -> str:
    """The id of a new notification."""
    answer = await client.post("/v1/notifications", json=shown(user_id, **fields))
    assert answer.status_code == 202
    return str(answer.json()["id"])


async def test_another_apps_notification_is_404() -> None:
    """It looks like one that never was; so does an id that cannot be."""
    async with served() as (service, client):
        known = await submitted(client)
        async with service.client(service.others.text) as stranger:
            for path in (known, UNKNOWN, "not-an-id", f"{known}/cancel", f"{known}/replay"):
                method = "POST" if "/" in path else "GET"
                answer = await stranger.request(method, f"/v1/notifications/{path}")
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
            assert (await stranger.get("/v1/notifications")).json()["items"] == []


async def test_a_parameter_a_route_does_not_know_is_refused() -> None:
    """A misspelt filter must not list everything."""
    async with served() as (_, client):
        paths = ["GET /v1/notifications?user=x", "GET /v1/devices/u?user_id=x", "POST /v1/notifications?dry=1"]
        for method, path in (each.split(" ") for each in paths):
            answer = await client.request(method, path, json=shown() if method == "POST" else None)
            assert (answer.status_code, answer.json()["faults"][0]["why"]) == (400, "unknown parameter"), path


@shows("S3-38")
async def test_history_pages_by_cursor_newest_first() -> None:
    """Every one exactly once; the last page says so."""
    async with served() as (_, client):
        ids = [await submitted(client, title=f"n{n}") for n in range(5)]
        seen: list[str] = []
        cursor: str | None = None
        while True:
            params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
            page = (await client.get("/v1/notifications", params=params)).json()
            seen += [item["id"] for item in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert seen == ids[::-1]


@pytest.mark.parametrize("path", ["/v1/notifications", "/v1/dead", "/v1/outbox"])
@pytest.mark.parametrize("cursor", ["x", "AAAA", "!!", "é", "A" * 128])
async def test_a_cursor_that_is_not_ours_is_400(path: str, cursor: str) -> None:
    """It is opaque, and checked."""
    async with served() as (_, client):
        answer = await client.get(path, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


@shows("S3-47")
async def test_cancelling_says_what_it_achieved() -> None:
    """Before it is leased `cancelled` (again and again), while it is being sent 202 `cancelling`, afterwards 409."""
    async with served() as (service, client):
        waiting, going = await submitted(client, "a"), await submitted(client, "b", urgency="high")
        first = await client.post(f"/v1/notifications/{waiting}/cancel")
        again = await client.post(f"/v1/notifications/{waiting}/cancel")
        assert [(each.status_code, each.json()["result"]) for each in (first, again)] == [(200, "cancelled")] * 2
        await _failed(service, going, before_settling=lambda: _cancelling(client, going))
        over = await client.post(f"/v1/notifications/{going}/cancel")
        assert (over.status_code, over.json()["code"]) == (409, "already_final")


async def _cancelling(client: httpx.AsyncClient, notification_id: str) -> None:
    answer = await client.post(f"/v1/notifications/{notification_id}/cancel")
    assert (answer.status_code, answer.json()["result"]) == (202, "cancelling")
    assert answer.json()["id"] == notification_id


async def _failed(service: Service, notification_id: str, before_settling: object = None) -> None:
    """Let a worker lease a high notification and settle it as dead."""
    lease = await service.work.lease(Lane.HIGH, 10, later(service.clock.now(), 60_000))
    if callable(before_settling):
        await before_settling()
    (item,) = [each for each in lease.items if each.notification.id == parse_id(notification_id)]
    target = Target(0, DeviceId("phone"), Channel("fcm"))
    change = Change(
        0, 1, Dead("INVALID_ARGUMENT", "no such field", FailureClass.TERMINAL, letter=True), service.clock.now()
    )
    assert await service.work.settle(lease, [Settled(item.notification, (change,), (target,))]) == []


@shows("S1-59")
async def test_a_receipt_shows_what_became_of_a_device() -> None:
    """The provider's own word, the class of the failure and the reason."""
    async with served() as (service, client):
        failed = await submitted(client, urgency="high")
        await _failed(service, failed)
        found = (await client.get(f"/v1/notifications/{failed}")).json()
        (receipt,) = found["receipts"]
        assert found["notification"]["status"] == "failed"
        assert (receipt["status"], receipt["code"], receipt["dead"]) == ("failed", "INVALID_ARGUMENT", True)
        assert receipt["failure_class"] == "terminal"


@shows("S2-36")
async def test_dead_letters_are_listed_and_replayed_by_id() -> None:
    """A replay starts a new round; a second one finds nothing to do."""
    async with served() as (service, client):
        failed = await submitted(client, urgency="high")
        await _failed(service, failed)
        (letter,) = (await client.get("/v1/dead")).json()["items"]
        assert letter["notification"]["id"] == failed
        order = {"ids": [failed, UNKNOWN]}
        first = await client.post("/v1/dead/replay", json=order)
        assert (first.status_code, first.json()["replayed"]) == (202, 1)
        assert [each.get("error", {}).get("code") for each in first.json()["results"]] == [None, "not_found"]
        again = await client.post("/v1/dead/replay", json=order)
        assert (again.status_code, again.json()["replayed"]) == (200, 0)
        assert (await client.get("/v1/dead")).json()["items"] == []


@shows("S4-26")
async def test_dead_letters_are_replayed_by_filter_page_by_page() -> None:
    """`next` leads on; what the filter does not name stays."""
    async with served() as (service, client):
        for user in ("a", "b", "c"):
            await _failed(service, await submitted(client, user, urgency="high"))
        nothing = await client.post("/v1/dead/replay", json={"filter": {"code": "BadDeviceToken"}})
        assert (nothing.status_code, nothing.json()["next"]) == (200, None)
        one = (await client.post("/v1/dead/replay", json={"filter": {"user_id": "b"}})).json()
        assert (one["replayed"], one["next"]) == (1, None)
        page = (await client.post("/v1/dead/replay", json={"filter": {}, "limit": 1})).json()
        rest = (await client.post("/v1/dead/replay", json={"filter": {}, "cursor": page["next"]})).json()
        assert (page["replayed"], rest["replayed"], rest["next"]) == (1, 1, None)


@pytest.mark.parametrize("order", [{}, {"ids": [UNKNOWN], "filter": {}}, {"ids": []}, {"ids": ["x"]}])
async def test_a_replay_of_dead_letters_names_ids_or_a_filter(order: dict) -> None:
    """Exactly one of them, and no empty list."""
    async with served() as (_, client):
        answer = await client.post("/v1/dead/replay", json=order)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


async def test_one_notification_is_replayed_with_or_without_a_body() -> None:
    """What is open cannot be."""
    async with served() as (service, client):
        failed = await submitted(client, urgency="high")
        early = await client.post(f"/v1/notifications/{failed}/replay")
        assert (early.status_code, early.json()["code"]) == (409, "not_replayable")
        await _failed(service, failed)
        answer = await client.post(f"/v1/notifications/{failed}/replay", json={"ttl": 60})
        assert (answer.status_code, answer.json()) == (202, {"id": failed, "status": "pending"})


@shows("S1-10", "S3-23")
async def test_a_device_is_registered_refreshed_listed_and_deactivated() -> None:
    """201 once, then 200; its token is never shown."""
    token = "ab" * 32
    async with served() as (_, client):
        body = {"platform": "ios", "token": token, "app_version": "1.2", "locale": "de-CH"}
        answers = [await client.put("/v1/devices/user-1/phone", json=body) for _ in range(2)]
        assert [each.status_code for each in answers] == [201, 200]
        listed = await client.get("/v1/devices/user-1")
        assert [each["device_id"] for each in listed.json()["items"]] == ["phone"]
        assert token not in listed.text
        gone = [(await client.delete("/v1/devices/user-1/phone")).status_code for _ in range(2)]
        assert gone == [204, 404]
        assert (await client.get("/v1/devices/user-1")).json()["items"] == []
        assert len((await client.get("/v1/devices/user-1", params={"inactive": "true"})).json()["items"]) == 1


async def test_a_token_for_another_use_is_an_apple_devices_alone() -> None:
    """What was said is shown; without a word it is for alerts."""
    async with served() as (_, client):
        for use, body in (("voip", {"token_use": "voip"}), ("alert", {})):
            answer = await client.put("/v1/devices/u/calls", json={"platform": "ios", "token": "ab" * 32} | body)
            assert answer.json()["device"]["token_use"] == use
        wrong = await client.put("/v1/devices/u/d", json={"platform": "android", "token": "t", "token_use": "voip"})
        assert (wrong.status_code, "token_use" in wrong.text) == (400, True)


@shows("S1-140")
async def test_above_the_cap_the_device_seen_longest_ago_makes_room() -> None:
    """The answer names it."""
    async with served() as (service, client):
        for n in range(3):
            service.clock.advance(1_000)
            answer = await client.put(f"/v1/devices/u/d{n}", json={"platform": "android", "token": f"token-{n}"})
        assert answer.json()["pushed_out"] == ["d0"]


async def test_ids_may_hold_what_a_path_cannot() -> None:
    """Percent-encoded, exactly once."""
    async with served() as (_, client):
        body = {"platform": "android", "token": "t"}
        for path, user in (("a%2Fb%20c", "a/b c"), ("a%252Fb", "a%2Fb"), ("%C3%A9", "é")):
            answer = await client.put(f"/v1/devices/{path}/d", json=body)
            assert answer.json()["device"]["user_id"] == user
        for path in ("%ff", "%00", "a%0A", "x" * 129):
            assert (await client.get(f"/v1/devices/{path}")).status_code == 400, path


@shows("S3-20", "S4-20")
@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"platform": "unknown", "token": "x"}, "platform"),
        ({"platform": "windows", "token": "x"}, "platform"),
        ({"platform": "ios", "token": "../../etc"}, "token"),
        ({"platform": "ios", "token": "ab" * 32, "keys": {"p256dh": P256DH, "auth": AUTH}}, "keys"),
        ({"platform": "web", "token": "https://push.example/x"}, "keys"),
        ({"platform": "web", "token": "ftp://push.example/x", "keys": {"p256dh": P256DH, "auth": AUTH}}, "token"),
        ({"platform": "web", "token": "https://u@push.example/", "keys": {"p256dh": P256DH, "auth": AUTH}}, "token"),
        ({"platform": "web", "token": "https://push.example/x", "keys": {"p256dh": "AA", "auth": AUTH}}, "keys.p256dh"),
        ({"platform": "web", "token": "https://push.example/x", "keys": {"p256dh": P256DH, "auth": "A"}}, "keys.auth"),
        ({"platform": "ios"}, "token"),
        ({"platform": "android", "token": "x", "expiration_time": 1_700_000_000_000}, "expiration_time"),
        ({"platform": "ios", "token": "ab" * 32, "extra": 1}, "extra"),
    ],
)
async def test_a_device_that_makes_no_sense_is_refused_with_the_path(body: dict, path: str) -> None:
    """A token is part of a provider's URL: it is checked before it is stored."""
    async with served() as (_, client):
        answer = await client.put("/v1/devices/u/d", json=body)
        assert answer.status_code == 400
        assert path in [fault["path"] for fault in answer.json()["faults"]]


async def test_a_push_subscription_is_a_device_and_another_one_replaces_it() -> None:
    """With both keys, as the browser gives them; after pushsubscriptionchange its id has the new endpoint alone."""
    async with served() as (service, client):
        body: dict = {"platform": "web", "token": "https://push.example/x", "keys": {"p256dh": P256DH, "auth": AUTH}}
        body["expiration_time"] = None
        assert (await client.put("/v1/devices/u/browser", json=body)).status_code == 201
        body |= {"token": "https://push.example/y", "expiration_time": service.clock.now() + 1.5}
        assert (await client.put("/v1/devices/u/browser", json=body)).status_code == 200
        (stored,) = await service.devices.of_user(DEMO, UserId("u"), inactive=True)
        assert stored.token == "https://push.example/y"


async def test_what_a_channel_could_never_send_to_is_not_registered() -> None:
    """The faults are the channel's own; another app's channels are not asked."""
    async with served() as (service, _):
        found = [Fault("token", "is nowhere"), Fault("keys.p256dh", "is not a point")]
        checks = {**service.api.device_checks, DEMO: {Platform("android"): lambda _: found}}
        api = msgspec.structs.replace(service.api, device_checks=checks)
        service.app = build_app(api)
        body = {"platform": "android", "token": "t"}
        async with service.client() as client:
            answer = await client.put("/v1/devices/u/d", json=body)
            assert answer.status_code == 400
            assert answer.json()["faults"] == [{"path": fault.path, "why": fault.why} for fault in found]
            assert await service.devices.of_user(DEMO, UserId("u"), inactive=True) == []
        async with service.client(service.others.text) as client:
            assert (await client.put("/v1/devices/u/d", json=body)).status_code == 201


async def test_explain_says_where_it_would_go_and_does_nothing() -> None:
    """A device whose channel has no credential is named with the reason."""
    async with served() as (service, client):
        await client.put("/v1/devices/user-1/phone", json={"platform": "android", "token": "t"})
        said = (await client.post("/v1/explain", json=shown(device_ids=["phone", "watch"]))).json()
        assert [(each["device_id"], each["suppressed"]) for each in said["targets"]] == [
            ("phone", "no_credential"),
            ("watch", "device_not_found"),
        ]
        assert said["routing"] == [
            {"rule": "credential", "device_id": "phone", "verdict": "suppressed", "reason": "no_credential"},
            {"rule": "active", "device_id": "watch", "verdict": "suppressed", "reason": "device_not_found"},
        ]
        assert said["dedup"] == ["content"]
        assert not await service.accepted()
        assert (await client.post("/v1/notifications", json=shown())).status_code == 202


async def test_health_and_metrics_need_no_key() -> None:
    """Readiness says which check fails."""
    async with served() as (service, client):
        del client.headers["authorization"]
        assert (await client.get("/health/live")).json() == {"alive": True}
        assert (await client.get("/health/ready")).status_code == 200
        service.not_ready = {"worker 1": "store: locked"}
        answer = await client.get("/health/ready")
        assert (answer.status_code, answer.json()["checks"]["worker 1"]) == (503, "store: locked")
        metrics = await client.get("/metrics")
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_metrics_and_the_reference_are_not_served_beside_the_api_where_that_is_said() -> None:
    """Health is, for who balances requests; without the page, the API's own address leads nowhere."""
    settings = msgspec.structs.replace(DEFAULTS, operating_listen=Listen("127.0.0.1", 9090), serve_reference=False)
    async with served(settings) as (_, client):
        for path in ("/metrics", "/docs", "/openapi.json", "/"):
            assert (await client.get(path)).status_code == 404, path
        assert (await client.get("/health/ready")).status_code == 200
        assert (await client.post("/v1/notifications", json=shown())).status_code == 202


async def test_a_process_without_the_role_answers_operators_alone() -> None:
    """Nothing is accepted or told there, whoever asks."""
    async with served(operating_only=True) as (service, client):
        for path in ("/health/live", "/health/ready", "/metrics"):
            assert (await client.get(path)).status_code == 200
        for path in ("/v1/notifications", "/docs", "/openapi.json", "/"):
            assert (await client.get(path)).json()["code"] == "not_found"
        answer = await client.post("/v1/notifications", json={"user_id": "ann", "title": "Hello"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert not await service.accepted()


@shows("S3-134")
async def test_the_reference_is_whole_and_local() -> None:
    """Every reference inside resolves, and nothing on the page comes from elsewhere."""
    async with served() as (_, client):
        del client.headers["authorization"]
        document = (await client.get("/openapi.json")).json()
        text = json.dumps(document)
        names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
        assert document["openapi"].startswith("3.1")
        assert names <= set(document["components"]["schemas"])
        front = await client.get("/")
        assert (front.status_code, front.headers["location"]) == (307, "/docs")
        page = (await client.get("/docs")).text
        assert "://" not in page
        for asset in ("swagger.js", "swagger.css", "start.js"):
            assert (await client.get(f"/docs/{asset}")).status_code == 200
        assert (await client.get("/docs/other.js")).status_code == 404
