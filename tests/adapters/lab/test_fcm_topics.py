"""FCM's further targets, topic management, quota, and credentials without a key file."""

import json
from typing import Any

import httpx
import msgspec
import pytest
from h2.events import DataReceived

from tests.adapters.lab.senders import ANDROID, Senders
from tests.adapters.lab.wire import Wire
from waypost.lab import Lab, LabSettings

pytestmark = pytest.mark.asyncio

FID = "dGVzdC1pbnN0YWxsYXRpb2"
NOTIFICATION = {"id": 7, "title": "Hi"}


async def called(senders: Senders, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
    if not senders.access_token:
        senders.access_token = (await senders.oauth()).json()["access_token"]
    return await senders.client.request(
        method, senders.urls.fcm + path, json=body,
        headers={"authorization": f"Bearer {senders.access_token}", **headers},
    )  # fmt: skip


async def test_an_installation_id_is_a_target_and_no_token(senders: Senders) -> None:
    made = (await senders.admin("POST", "/tokens", {"platform": "fid"}))["tokens"][0]
    for fid in (FID, made):
        assert (await senders.fcm({"token": None, "fid": fid})).status_code == 200
        as_token = await senders.fcm({"token": fid})
        assert as_token.status_code == (200 if fid == FID else 400)  # one not made here could be either
    as_fid = await senders.fcm({"token": None, "fid": ANDROID})
    assert (as_fid.status_code, as_fid.json()["error"]["details"][0]["errorCode"]) == (404, "UNREGISTERED")
    await senders.admin("POST", f"/tokens/{FID}/kill")
    assert (await senders.fcm({"token": None, "fid": FID})).status_code == 404


CONDITIONS = [
    ("'a' in topics", True),
    ("'a' in topics && ('b' in topics || !('c' in topics))", True),
    (" || ".join(f"'t{number}' in topics" for number in range(5)), True),
    (" || ".join(f"'t{number}' in topics" for number in range(6)), False),
    ("'a' in topics &&", False),
    ("('a' in topics", False),
    ("'a' in topics 'b' in topics", False),
    ("a in topics", False),
    ("'a b' in topics", False),
    ("", False),
]


@pytest.mark.parametrize(("condition", "good"), CONDITIONS)
async def test_conditions_name_up_to_five_topics(senders: Senders, condition: str, good: bool) -> None:
    answer = await senders.fcm({"token": None, "condition": condition})
    assert answer.status_code == (200 if good else 400), answer.text
    if not good:
        assert answer.json()["error"]["details"][0]["fieldViolations"][0]["field"] == "message.condition"


ANDROID_V2 = [
    ({"remote_notification": {"notification": NOTIFICATION}}, None),
    ({"background_sync": {}, "ttl": "3.5s"}, None),
    ({}, "message.android_v2"),
    ({"background_sync": {}, "remote_notification": {"notification": NOTIFICATION}}, "message.android_v2"),
    ({"remote_notification": {}}, "message.android_v2.remote_notification.notification"),
    (
        {"remote_notification": {"notification": {"id": "7"}}},
        "message.android_v2.remote_notification.notification.id",
    ),
    ({"background_sync": {}, "priority": "HIGH"}, "message.android_v2"),
]


@pytest.mark.parametrize(("android", "field"), ANDROID_V2)
async def test_the_second_android_block_is_one_of_two_kinds(senders: Senders, android: dict, field: str | None) -> None:
    answer = await senders.fcm({"android_v2": android})
    if field is None:
        assert answer.status_code == 200, answer.text
    else:
        assert answer.json()["error"]["details"][0]["fieldViolations"][0]["field"] == field


async def test_topic_subscriptions_are_made_changed_listed_and_deleted(senders: Senders) -> None:
    base = f"/v1/projects/lab-project/registrations/{FID}/topicSubscriptions"
    made = await called(senders, "POST", f"{base}?topic_name=news", {})
    assert (made.status_code, made.json()["topicName"]) == (201, "news")
    assert made.json()["name"] == f"projects/lab-project/registrations/{FID}/topicSubscriptions/news"
    again = await called(senders, "POST", f"{base}?topic_name=news", {})
    assert (again.status_code, again.json()["error"]["status"]) == (409, "ALREADY_EXISTS")
    for _ in range(2):
        assert (await called(senders, "PATCH", f"{base}/sport", {})).status_code == 200
    listed = (await called(senders, "GET", base)).json()["topicSubscriptions"]
    assert [each["topicName"] for each in listed] == ["news", "sport"]
    assert (await called(senders, "GET", f"{base}/news")).json() == made.json()
    assert (await called(senders, "DELETE", f"{base}/news")).json() == {}
    assert (await called(senders, "GET", f"{base}/news")).status_code == 404
    assert (await called(senders, "DELETE", f"{base}/news")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", f"/v1/projects/lab-project/registrations/{FID}/topicSubscriptions?topic_name=a+b", 400),
        ("POST", f"/v1/projects/lab-project/registrations/{FID}/topicSubscriptions", 400),
        ("POST", "/v1/projects/lab-project/registrations/x/topicSubscriptions?topic_name=a", 404),
        ("POST", f"/v1/projects/other/registrations/{FID}/topicSubscriptions?topic_name=a", 403),
        ("PUT", f"/v1/projects/lab-project/registrations/{FID}/topicSubscriptions/a", 404),
    ],
)
async def test_topic_subscriptions_that_are_refused(senders: Senders, method: str, path: str, status: int) -> None:
    assert (await called(senders, method, path, {})).status_code == status


async def test_topics_need_an_access_token(senders: Senders) -> None:
    path = f"/v1/projects/lab-project/registrations/{FID}/topicSubscriptions"
    answer = await called(senders, "GET", path, authorization="Bearer x")
    assert (answer.status_code, answer.json()["error"]["status"]) == (401, "UNAUTHENTICATED")


async def test_instance_id_adds_and_removes_up_to_1000_tokens_each_with_its_own_result(senders: Senders) -> None:
    dead = ANDROID + "x"
    await senders.admin("POST", f"/tokens/{dead}/kill")
    body = {"to": "/topics/news", "registration_tokens": [ANDROID, dead, "short"]}
    own = {"access_token_auth": "true"}
    added = await called(senders, "POST", "/iid/v1:batchAdd", body, **own)
    assert added.json() == {"results": [{}, {"error": "NOT_FOUND"}, {"error": "INVALID_ARGUMENT"}]}
    listed = await called(senders, "GET", f"/v1/projects/lab-project/registrations/{ANDROID}/topicSubscriptions")
    assert [each["topicName"] for each in listed.json()["topicSubscriptions"]] == ["news"]
    removed = await called(senders, "POST", "/iid/v1:batchRemove", {**body, "registration_tokens": [ANDROID]}, **own)
    assert removed.json() == {"results": [{}]}
    refused = [
        await called(senders, "POST", "/iid/v1:batchAdd", {**body, "registration_tokens": [ANDROID] * 1001}, **own),
        await called(senders, "POST", "/iid/v1:batchAdd", {**body, "to": "news"}, **own),
        await called(senders, "POST", "/iid/v1:batchAdd", body),
        await called(senders, "GET", "/iid/v1:batchAdd", **own),
    ]
    assert [answer.status_code for answer in refused] == [400, 400, 401, 405]


async def test_a_projects_quota_fills_up_within_a_minute(settings: LabSettings, senders: Senders) -> None:
    import ssl

    now = [senders_now := 1_790_000_000.0]
    lab = Lab(msgspec.structs.replace(settings, fcm_quota_per_minute=3, clock=lambda: now[0]))
    await lab.start()
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    async with httpx.AsyncClient(http2=True, verify=context) as client:
        few = Senders(client, lab.urls, lab.settings.directory)
        few.access_token = str(lab.oauth.issue()["access_token"])
        first = [await few.fcm({"token": "short"}), await few.fcm(), await few.fcm()]
        spent = await few.fcm()
        now[0] = senders_now + 20
        later = await few.fcm()
    await lab.stop()
    assert [answer.status_code for answer in first] == [400, 200, 200]  # what is refused counts, too
    assert (spent.status_code, spent.headers["retry-after"]) == (429, "20")
    error = spent.json()["error"]
    assert (error["status"], error["details"][0]["errorCode"]) == ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")
    assert error["details"][1]["@type"] == "type.googleapis.com/google.rpc.QuotaFailure"
    assert later.status_code == 200


async def test_a_slow_backend_answers_500_when_its_time_is_up(senders: Senders) -> None:
    """Google's own takes 5 seconds for it; the script says how long."""
    await senders.fcm()
    rules = [{"where": "fcm", "do": {"latency_ms": 50}}, {"where": "fcm", "do": {"answer": {"status": 500}}}]
    await senders.admin("POST", "/faults", rules)
    answer = await senders.fcm()
    assert (answer.status_code, answer.json()["error"]["status"]) == (500, "INTERNAL")
    assert answer.elapsed.total_seconds() >= 0.05


async def test_an_answer_ends_with_an_empty_frame_of_its_own(lab: Lab) -> None:
    wire = await Wire.dial(lab.urls.fcm, lab.settings.directory)
    await wire.answer(wire.send("/nowhere", {}, b"{}"))
    frames = [event.data for event in wire.events if isinstance(event, DataReceived)]
    assert (len(frames), frames[-1]) == (2, b"")
    await wire.close()


async def test_the_metadata_server_hands_out_access_tokens_that_fcm_takes(senders: Senders) -> None:
    base = f"{senders.urls.metadata}/computeMetadata/v1"
    flavor = {"Metadata-Flavor": "Google"}
    answer = await senders.client.get(f"{base}/instance/service-accounts/default/token", headers=flavor)
    assert (answer.json()["token_type"], answer.headers["metadata-flavor"]) == ("Bearer", "Google")
    senders.access_token = answer.json()["access_token"]
    assert (await senders.fcm()).status_code == 200
    project = await senders.client.get(f"{base}/project/project-id", headers=flavor)
    assert project.text == "lab-project"
    assert (await senders.client.get(senders.urls.metadata)).headers["metadata-flavor"] == "Google"


async def test_the_metadata_server_wants_googles_header(senders: Senders) -> None:
    base = f"{senders.urls.metadata}/computeMetadata/v1"
    flavor = {"Metadata-Flavor": "Google"}
    bare = await senders.client.get(f"{base}/instance/service-accounts/default/token")
    unknown = await senders.client.get(f"{base}/instance/x", headers=flavor)
    posted = await senders.client.post(f"{base}/project/project-id", headers=flavor)
    assert [answer.status_code for answer in (bare, unknown, posted)] == [403, 404, 405]
    assert json.dumps(bare.text).count("Metadata-Flavor") == 1
