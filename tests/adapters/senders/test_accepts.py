"""A strict provider accepts, verifies and decrypts what each sender sends."""

from __future__ import annotations

import pytest

from tests.adapters.senders.bench import (
    accepted,
    fresh,
    headers_of,
    outcome,
    outcomes,
    payload_of,
    to_android,
    to_ios,
    to_web,
)
from tests.shows import shows
from tests.unit.adapters.deliveries import delivery
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.webpush.sender import WebPushSender
from waypost.domain.content import Action, Content, Kind
from waypost.domain.device import Platform
from waypost.domain.ids import format_id
from waypost.domain.outcome import Taken
from waypost.lab import Lab

FULL = Content(
    title="Title",
    subtitle="Subtitle",
    body="Body",
    data={"order": 7, "nested": {"a": [1]}, "text": "plain"},
    image="https://img.example.com/1.png",
    icon="ic_order",
    link="https://example.com/orders/7",
    actions=(Action("open", "Open"),),
    sound="chime",
    badge=5,
    category="ORDER",
    thread="orders",
    android_channel="orders",
    collapse_key="an order's collapse key that is longer than either of the headers can take, so it is hashed",
)


@shows("S1-09", "S1-52", "S1-90", "S1-135")
@pytest.mark.asyncio
async def test_apns_takes_visible_and_silent_on_connections_of_their_own(lab: Lab, apns: ApnsSender) -> None:
    visible, silent = to_ios(lab, fresh(FULL)), to_ios(lab, fresh(Content(data={"sync": True}), kind=Kind.SILENT))
    first, second = await outcomes(apns, [visible, silent])
    assert isinstance(first, Taken)
    assert first.provider_id
    assert isinstance(second, Taken)
    records = {record.push_type: record for record in accepted(lab, "apns")}
    assert records["alert"].connection != records["background"].connection
    assert records["alert"].notification_id == format_id(visible.id)
    assert payload_of(lab, records["alert"])["aps"]["alert"]["title"] == "Title"


@shows("S1-09")
@pytest.mark.asyncio
async def test_fcm_takes_visible_and_silent(lab: Lab, fcm: FcmSender) -> None:
    visible, silent = to_android(lab, fresh(FULL)), to_android(lab, fresh(Content(data={"a": 1}), kind=Kind.SILENT))
    first, second = await outcomes(fcm, [visible, silent])
    assert isinstance(first, Taken)
    assert first.provider_id.startswith("projects/lab-project/messages/")
    assert isinstance(second, Taken)
    by_id = {record.notification_id: record for record in accepted(lab, "fcm")}
    assert payload_of(lab, by_id[format_id(visible.id)])["message"]["notification"]["title"] == "Title"
    assert "notification" not in payload_of(lab, by_id[format_id(silent.id)])["message"]


@pytest.mark.asyncio
async def test_fcm_takes_what_is_for_ios_and_web_apps(lab: Lab, fcm: FcmSender) -> None:
    tokens = lab.tokens.make("android", 3, topic=None, environment=None)
    what = [fresh(FULL), fresh(Content(data={"a": 1}), kind=Kind.SILENT)]
    asked = [
        delivery(Platform(platform), token, each)
        for platform, token in zip(("ios_fcm", "web_fcm", "android"), tokens, strict=True)
        for each in what
    ]
    assert all(isinstance(got, Taken) for got in await outcomes(fcm, asked))
    parts = [
        payload_of(lab, record)["message"].keys() & {"android", "apns", "webpush"} for record in accepted(lab, "fcm")
    ]
    assert sorted(map(sorted, parts)) == [["android"], ["android"], ["apns"], ["apns"], ["webpush"], ["webpush"]]


@shows("S1-88")
@pytest.mark.asyncio
@pytest.mark.parametrize("service", ["rfc", "mozilla", "chrome", "apple", "windows"])
async def test_a_push_service_takes_and_decrypts(lab: Lab, webpush: WebPushSender, service: str) -> None:
    one = to_web(lab, fresh(FULL), service)
    got = await outcome(webpush, one)
    assert isinstance(got, Taken)
    assert got.provider_id
    (record,) = accepted(lab, "webpush")
    assert record.notification_id == format_id(one.id)
    assert payload_of(lab, record)["actions"] == [{"action": "open", "title": "Open"}]
    assert headers_of(lab, record)["content-encoding"] == "aes128gcm"


@shows("S0-06", "S1-89")
@pytest.mark.asyncio
async def test_many_deliveries_share_few_connections_and_all_arrive_once(
    lab: Lab, apns: ApnsSender, fcm: FcmSender, webpush: WebPushSender
) -> None:
    shared = fresh()
    for sender, gateway, batch in (
        (apns, "apns", [to_ios(lab, shared) for _ in range(300)]),
        (fcm, "fcm", [to_android(lab, shared) for _ in range(300)]),
        (webpush, "webpush", [to_web(lab, shared) for _ in range(100)]),
    ):
        assert all(isinstance(got, Taken) for got in await outcomes(sender, batch))
        assert len(accepted(lab, gateway)) == len(batch)
        assert lab.records.counts[gateway].duplicates == 0
        assert lab.records.counts[gateway].connections_opened <= 4


@pytest.mark.asyncio
async def test_a_ttl_of_zero_reaches_the_provider_as_zero(
    lab: Lab, apns: ApnsSender, fcm: FcmSender, webpush: WebPushSender
) -> None:
    now_or_never = fresh(ttl_ms=0)
    assert isinstance(await outcome(apns, to_ios(lab, now_or_never)), Taken)
    assert isinstance(await outcome(fcm, to_android(lab, now_or_never)), Taken)
    assert isinstance(await outcome(webpush, to_web(lab, now_or_never)), Taken)
    (to_apns,), (to_fcm,), (to_webpush,) = accepted(lab, "apns"), accepted(lab, "fcm"), accepted(lab, "webpush")
    assert headers_of(lab, to_apns)["apns-expiration"] == "0"
    assert payload_of(lab, to_fcm)["message"]["android"]["ttl"] == "0s"
    assert headers_of(lab, to_webpush)["ttl"] == "0"
