"""Broadcast channels: made, read, listed, deleted and sent to, and every refusal Apple lists for them."""

import json
from typing import Any

import httpx
import msgspec
import pytest

from tests.adapters.lab.senders import NID, Senders
from waypost.lab import Lab, LabSettings

pytestmark = pytest.mark.asyncio

APP = "com.example.demo"
UPDATE = {"aps": {"event": "update", "timestamp": 1, "content-state": {"score": 1}}, "waypost_id": NID}
NEW = {"message-storage-policy": 1, "push-type": "LiveActivity"}
UNKNOWN = "AAAAAAAAAAAAAAAAAAAAAA=="


async def channels(
    senders: Senders, method: str, headers: dict[str, Any] | None = None, body: Any = None, path: str | None = None
) -> httpx.Response:
    merged = {"authorization": f"bearer {senders.apns_token}", **(headers or {})}
    return await senders.client.request(
        method, senders.urls.apns_channels + (path or f"/1/apps/{APP}/channels"), headers=merged,
        content=body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b"",
    )  # fmt: skip


async def made(senders: Senders, policy: int = 1) -> str:
    answer = await channels(senders, "POST", body={**NEW, "message-storage-policy": policy})
    return str(answer.headers["apns-channel-id"])


async def broadcast(
    senders: Senders, headers: dict[str, Any], payload: Any = UPDATE, path: str | None = None, method: str = "POST"
) -> httpx.Response:
    merged = {
        "authorization": f"bearer {senders.apns_token}", "apns-push-type": "liveactivity", "apns-priority": "10",
        "apns-expiration": "0", **headers,
    }  # fmt: skip
    return await senders.client.request(
        method, senders.urls.apns_broadcast + (path or f"/4/broadcasts/apps/{APP}"),
        headers={name: value for name, value in merged.items() if value is not None},
        content=payload if isinstance(payload, bytes) else json.dumps(payload).encode(),
    )  # fmt: skip


async def test_a_channel_is_made_read_listed_and_deleted(senders: Senders) -> None:
    created = await channels(senders, "POST", {"apns-request-id": NID}, {**NEW, "message-storage-policy": 0})
    assert (created.status_code, created.content, created.headers["apns-request-id"]) == (201, b"", NID)
    name = {"apns-channel-id": created.headers["apns-channel-id"]}
    read = await channels(senders, "GET", name)
    assert (read.status_code, read.json()) == (200, {"message-storage-policy": 0, "push-type": "LiveActivity"})
    listed = await channels(senders, "GET", path=f"/1/apps/{APP}/all-channels")
    assert listed.json() == {"channels": [name["apns-channel-id"]]}
    deleted = await channels(senders, "DELETE", name)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert (await channels(senders, "GET", name)).json() == {"reason": "ChannelNotRegistered"}


CHANNEL_REFUSALS: list[tuple[str, dict[str, Any], Any, str | None, int, str]] = [
    ("POST", {}, b"", None, 400, "PayloadEmpty"),
    ("POST", {}, b"[", None, 400, "BadRequestPayload"),
    ("POST", {}, {**NEW, "message-storage-policy": 2}, None, 400, "BadRequestPayload"),
    ("POST", {}, {"message-storage-policy": 1}, None, 400, "MissingPushType"),
    ("POST", {}, {**NEW, "push-type": "alert"}, None, 400, "InvalidPushType"),
    ("POST", {"apns-request-id": "1"}, NEW, None, 400, "BadMessageId"),
    ("POST", {}, NEW, "/1/apps/com.example.other/channels", 403, "TopicMismatch"),
    ("POST", {}, NEW, f"/1/apps/{APP}/channels?a=b", 400, "BadRequestParams"),
    ("POST", {}, NEW, f"/1/apps/{APP}/all-channels", 404, "BadPath"),
    ("PUT", {}, NEW, None, 404, "BadPath"),
    ("GET", {}, None, f"/1/apps/{APP}/channel", 404, "BadPath"),
    ("GET", {}, None, None, 400, "MissingChannelId"),
    ("GET", {"apns-channel-id": "?"}, None, None, 400, "BadChannelId"),
    ("DELETE", {"apns-channel-id": UNKNOWN}, None, None, 400, "ChannelNotRegistered"),
    ("GET", {"authorization": "x"}, None, None, 403, "MissingProviderToken"),
    ("GET", {"authorization": "bearer x"}, None, None, 403, "InvalidProviderToken"),
]


@pytest.mark.parametrize(("method", "headers", "body", "path", "status", "reason"), CHANNEL_REFUSALS)
async def test_channel_refusals(
    senders: Senders, method: str, headers: dict, body: Any, path: str | None, status: int, reason: str
) -> None:
    answer = await channels(senders, method, headers, body, path)
    assert (answer.status_code, answer.json()) == (status, {"reason": reason})
    assert answer.headers["apns-request-id"]


BROADCAST_REFUSALS: list[tuple[dict[str, Any], Any, str | None, int, str]] = [
    ({"apns-push-type": None}, UPDATE, None, 400, "MissingPushType"),
    ({"apns-push-type": "alert"}, UPDATE, None, 400, "InvalidPushType"),
    ({"apns-channel-id": None}, UPDATE, None, 400, "MissingChannelId"),
    ({"apns-channel-id": "?"}, UPDATE, None, 400, "BadChannelId"),
    ({"apns-channel-id": UNKNOWN}, UPDATE, None, 400, "ChannelNotRegistered"),
    ({"apns-priority": "7"}, UPDATE, None, 400, "BadPriority"),
    ({"apns-expiration": "soon"}, UPDATE, None, 400, "BadExpirationDate"),
    ({"apns-request-id": NID.upper()}, UPDATE, None, 400, "BadMessageId"),
    ({}, UPDATE, f"/4/broadcasts/apps/{APP}.push-type.liveactivity", 400, "TopicDisallowed"),
    ({}, UPDATE, "/4/broadcasts/apps/com.example.other", 403, "TopicMismatch"),
    ({}, UPDATE, "/4/broadcast", 404, "BadPath"),
    ({}, UPDATE, f"/4/broadcasts/apps/{APP}?a=b", 400, "BadRequestParams"),
    ({}, b"", None, 400, "PayloadEmpty"),
    ({}, b"[]", None, 400, "BadRequestPayload"),
    ({}, {"aps": {"alert": "a"}}, None, 400, "BadRequestPayload"),
    ({}, {**UPDATE, "more": "x" * 5120}, None, 413, "PayloadTooLarge"),
    ({"authorization": None}, UPDATE, None, 403, "MissingProviderToken"),
]


@pytest.mark.parametrize(("headers", "payload", "path", "status", "reason"), BROADCAST_REFUSALS)
async def test_broadcast_refusals(
    senders: Senders, headers: dict, payload: Any, path: str | None, status: int, reason: str
) -> None:
    headers = {"apns-channel-id": await made(senders), **headers}
    answer = await broadcast(senders, headers, payload, path)
    assert (answer.status_code, answer.json()) == (status, {"reason": reason})


async def test_a_broadcast_is_taken_with_up_to_5120_bytes_and_recorded(senders: Senders) -> None:
    channel = await made(senders)
    room = 5120 - len(json.dumps({**UPDATE, "more": ""}))
    answer = await broadcast(senders, {"apns-channel-id": channel}, {**UPDATE, "more": "x" * room})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["apns-request-id"]
    (record,) = (await senders.admin("GET", "/received?gateway=apns_broadcast"))["received"]
    assert (record["token"], record["notification_id"], record["push_type"]) == (channel, NID, "broadcast")


async def test_a_channel_that_stores_nothing_takes_no_expiration(senders: Senders) -> None:
    channel = await made(senders, policy=0)
    stored = await broadcast(senders, {"apns-channel-id": channel, "apns-expiration": "1893456000"})
    assert stored.json() == {"reason": "BadExpirationDate"}
    assert (await broadcast(senders, {"apns-channel-id": channel})).status_code == 200


async def test_a_live_activity_cannot_be_started_by_broadcast(senders: Senders) -> None:
    aps = {"event": "start", "timestamp": 1, "content-state": {}, "attributes-type": "A", "attributes": {}}
    start = {"aps": {**aps, "alert": {"title": "a"}}}
    answer = await broadcast(senders, {"apns-channel-id": await made(senders)}, start)
    assert answer.json() == {"reason": "BadRequestPayload"}


async def test_only_post_sends(senders: Senders) -> None:
    answer = await broadcast(senders, {}, method="PUT")
    assert (answer.status_code, answer.json()) == (405, {"reason": "MethodNotAllowed"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"broadcast_topics": ()}, "FeatureNotEnabled"), ({"channel_limit": 0}, "CannotCreateChannelConfig")],
)
async def test_the_lab_can_be_told_what_an_app_may(settings: LabSettings, change: dict, reason: str) -> None:
    import ssl

    lab = Lab(msgspec.structs.replace(settings, **change))
    await lab.start()
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    async with httpx.AsyncClient(http2=True, verify=context) as client:
        answer = await channels(Senders(client, lab.urls, lab.settings.directory), "POST", body=NEW)
    await lab.stop()
    assert (answer.status_code, answer.json()) == (400, {"reason": reason})


async def test_what_only_a_script_can_bring_about_speaks_apples_words(senders: Senders) -> None:
    """Apple lists the 503 of this host with a space in it."""
    fault = {"where": "apns_broadcast", "do": {"answer": {"status": 503, "reason": "Service Unavailable"}}}
    await senders.admin("POST", "/faults", [fault])
    answer = await broadcast(senders, {"apns-channel-id": UNKNOWN})
    assert (answer.status_code, answer.json()) == (503, {"reason": "Service Unavailable"})
