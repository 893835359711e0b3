"""What each browser's push service does in its own way, receipts, transports, and declarative messages."""

import json
import ssl
from typing import Any

import httpx
import msgspec
import pytest

from tests.adapters.lab.senders import Senders
from waypost.lab import Lab, LabSettings

pytestmark = pytest.mark.asyncio


async def test_each_service_says_yes_in_its_own_headers(senders: Senders) -> None:
    answers = {
        name: await senders.webpush(await senders.subscription(service=name))
        for name in ("rfc", "mozilla", "chrome", "apple", "windows")
    }
    assert {answer.status_code for answer in answers.values()} == {201}
    for name in ("rfc", "mozilla", "chrome", "windows"):
        assert answers[name].headers["location"]
        assert answers[name].headers["ttl"] == "60"
    assert answers["apple"].headers["apns-id"]
    assert answers["windows"].headers["x-wns-status"] == "received"
    assert answers["windows"].headers["x-wns-msg-id"]


DEAD: list[tuple[str, int, Any, dict[str, str]]] = [
    ("mozilla", 410, {"code": 410, "errno": 103}, {"cache-control": "max-age=86400"}),
    ("chrome", 410, b"push subscription has unsubscribed or expired.\n", {}),
    ("apple", 410, {"reason": "Unregistered"}, {}),
    ("windows", 410, b"", {"x-wns-status": "dropped", "x-wns-error-description": "The channel has expired"}),
]


@pytest.mark.parametrize(("service", "status", "body", "headers"), DEAD)
async def test_each_service_has_its_way_of_saying_gone(
    senders: Senders, service: str, status: int, body: Any, headers: dict[str, str]
) -> None:
    subscription = await senders.subscription(service=service)
    await senders.admin("POST", f"/tokens/{subscription['token']}/kill")
    check(await senders.webpush(subscription), status, body, headers)


SCRIPTED: list[tuple[str, dict[str, Any], int, Any, dict[str, str]]] = [
    ("mozilla", {"status": 503}, 503, {"code": 503, "errno": 201}, {"retry-after": "120"}),
    ("mozilla", {"status": 502}, 502, {"errno": 900}, {}),
    ("apple", {"status": 429}, 429, {"reason": "TooManyRequests"}, {}),
    ("apple", {"status": 503, "reason": "Shutdown"}, 503, {"reason": "Shutdown"}, {}),
    ("windows", {"status": 406}, 406, b"", {"x-wns-status": "channelthrottled"}),
    ("chrome", {"status": 429, "retry_after": 9}, 429, b"", {"retry-after": "9"}),
]


@pytest.mark.parametrize(("service", "fault", "status", "body", "headers"), SCRIPTED)
async def test_a_scripted_failure_speaks_as_the_subscriptions_service(
    senders: Senders, service: str, fault: dict, status: int, body: Any, headers: dict[str, str]
) -> None:
    subscription = await senders.subscription(service=service)
    await senders.admin("POST", "/faults", [{"where": "webpush", "do": {"answer": fault}}])
    check(await senders.webpush(subscription), status, body, headers)


IDENTITY: list[tuple[str, str, int, Any, dict[str, str]]] = [
    ("mozilla", "aud", 401, {"errno": 109}, {}),
    ("apple", "aud", 403, {"reason": "BadJwtToken"}, {}),
    ("apple", "key", 403, {"reason": "BadVapidPublicKey"}, {}),
    ("apple", "sub", 403, {"reason": "BadJwtToken"}, {}),
    ("chrome", "aud", 403, None, {}),
    ("chrome", "legacy", 400, None, {"content-type": "text/html; charset=UTF-8"}),
    ("windows", "aud", 400, b"", {"x-wns-error-description": "vapid_audience"}),
]


@pytest.mark.parametrize(("service", "fault", "status", "body", "headers"), IDENTITY)
async def test_a_bad_identity_is_refused_in_each_services_way(
    senders: Senders, service: str, fault: str, status: int, body: Any, headers: dict[str, str]
) -> None:
    header = {
        "aud": senders.vapid(aud="https://push.example.net"), "sub": senders.vapid(sub=None),
        "key": senders.vapid().partition(", k=")[0] + ", k=AAAA", "legacy": "key=AAAA",
    }[fault]  # fmt: skip
    answer = await senders.webpush(await senders.subscription(service=service), {"authorization": header})
    check(answer, status, body, headers)
    if fault == "legacy":
        assert "UnauthorizedRegistration" in answer.text


def check(answer: httpx.Response, status: int, body: Any, headers: dict[str, str]) -> None:
    assert answer.status_code == status, answer.text
    if isinstance(body, dict):
        assert body.items() <= answer.json().items()
    elif body is not None:
        assert answer.content == body
    assert headers.items() <= dict(answer.headers).items()


async def test_mozilla_does_without_a_contact(senders: Senders) -> None:
    subscription = await senders.subscription(service="mozilla")
    assert (await senders.webpush(subscription, {"authorization": senders.vapid(sub=None)})).status_code == 201
    bad = await senders.webpush(subscription, {"authorization": senders.vapid(sub="ops")})
    assert bad.status_code == 401


async def test_windows_takes_a_ttl_of_0_from_a_sender_that_says_no_cache(senders: Senders) -> None:
    subscription = await senders.subscription(service="windows")
    answer = await senders.webpush(subscription, {"ttl": "0", "x-wns-cache-policy": "no-cache"})
    assert answer.status_code == 201


async def test_a_receipt_tells_what_became_of_a_message(senders: Senders) -> None:
    subscription = await senders.subscription()
    answer = await senders.webpush(subscription, {"prefer": "respond-async"})
    assert answer.status_code == 202
    assert answer.headers["location"]
    link, _, relation = answer.headers["link"].partition(">; ")
    assert relation == 'rel="urn:ietf:params:push:receipt"'
    receipt = link.removeprefix("<")
    assert (await senders.client.get(receipt)).status_code == 204
    await senders.admin("POST", f"/tokens/{subscription['token']}/kill")
    assert (await senders.client.get(receipt)).status_code == 410
    assert (await senders.client.get(receipt + "x")).status_code == 404


async def test_no_browsers_service_gives_receipts(senders: Senders) -> None:
    subscription = await senders.subscription(service="mozilla")
    assert (await senders.webpush(subscription, {"prefer": "respond-async"})).status_code == 201


async def test_a_service_may_keep_messages_for_less_time_and_says_so(settings: LabSettings) -> None:
    lab = Lab(msgspec.structs.replace(settings, webpush_max_ttl_s=600))
    await lab.start()
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    async with httpx.AsyncClient(http2=True, verify=context) as client:
        senders = Senders(client, lab.urls, lab.settings.directory)
        subscription = await senders.subscription()
        kept = [(await senders.webpush(subscription, {"ttl": ttl})).headers["ttl"] for ttl in ("60", "601", "9" * 5000)]
    await lab.stop()
    assert kept == ["60", "600", "600"]


async def test_one_port_speaks_http_1_1_alone_and_one_without_tls(senders: Senders) -> None:
    for transport, url in (("http1", senders.urls.webpush_http1), ("plain", senders.urls.webpush_plain)):
        subscription = await senders.subscription(transport=transport)
        assert subscription["endpoint"].startswith(url)
        answer = await senders.webpush(subscription, {"authorization": senders.vapid(aud=url)})
        assert (answer.status_code, answer.http_version) == (201, "HTTP/1.1"), answer.text
        assert answer.headers["location"].startswith(url)
        foreign = await senders.webpush(subscription)
        assert foreign.text == "vapid_audience"
    assert senders.urls.webpush_plain.startswith("http://")
    await senders.admin("POST", f"/tokens/{subscription['endpoint']}/kill")
    assert (await senders.webpush(subscription)).status_code == 410


async def test_a_redirect_can_be_ordered_and_is_for_browsers_alone(senders: Senders) -> None:
    subscription, other = await senders.subscription(), await senders.subscription()
    fault = {"status": 307, "headers": {"location": other["endpoint"]}}
    await senders.admin("POST", "/faults", [{"match": {"token": subscription["token"]}, "do": {"answer": fault}}])
    answer = await senders.webpush(subscription)
    assert (answer.status_code, answer.headers["location"]) == (307, other["endpoint"])


GOOD = {"title": "Hi", "navigate": "https://example.com/"}
DECLARATIVE: list[tuple[Any, str]] = [
    ({"title": "Hi"}, "ordinary"),
    ({"web_push": 8030, "notification": GOOD}, "declarative"),
    ({"web_push": 8030, "notification": GOOD, "mutable": True, "app_badge": "7"}, "declarative"),
    ({"web_push": 8030}, "invalid: no notification"),
    ({"web_push": 8030, "notification": {**GOOD, "title": ""}}, "invalid: notification.title is missing"),
    ({"web_push": 8030, "notification": {**GOOD, "navigate": "/a"}}, "invalid: notification.navigate is not a URL"),
    ({"web_push": 8030, "notification": {**GOOD, "body": 1}}, "invalid: notification.body is not a text"),
    ({"web_push": 8030, "notification": {**GOOD, "dir": "up"}}, "invalid: notification.dir is none of auto, ltr, rtl"),
    ({"web_push": 8030, "notification": {**GOOD, "icon": 1}}, "invalid: notification.icon is not a URL"),
    ({"web_push": 8030, "notification": {**GOOD, "silent": 1}}, "invalid: notification.silent is not a boolean"),
    ({"web_push": 8030, "notification": {**GOOD, "actions": {}}}, "invalid: notification.actions is not a list"),
    ({"web_push": 8030, "notification": {**GOOD, "actions": [{}]}}, "invalid: an action lacks action or title"),
    ({"web_push": 8030, "notification": GOOD, "mutable": 1}, "invalid: mutable is not a boolean"),
    ({"web_push": 8030, "notification": GOOD, "app_badge": -1}, "invalid: app_badge is not a number from 0"),
    ("text", "ordinary"),
]


@pytest.mark.parametrize(("message", "verdict"), DECLARATIVE)
async def test_the_record_says_what_the_browser_makes_of_a_message(
    senders: Senders, message: Any, verdict: str
) -> None:
    subscription = await senders.subscription(service="apple")
    await senders.webpush(subscription, body=senders.encrypted(subscription, json.dumps(message).encode()))
    (record,) = (await senders.admin("GET", "/received"))["received"]
    assert record["declarative"] == verdict
