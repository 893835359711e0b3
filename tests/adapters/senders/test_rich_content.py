"""Everything that a platform can show reaches the device as it was asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.adapters.senders.bench import (
    accepted,
    fresh,
    headers_of,
    outcome,
    outcomes,
    payload_of,
    script,
    to_android,
    to_ios,
    to_web,
)
from tests.shows import shows
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.webpush.sender import WebPushSender
from waypost.domain.channel import Channel
from waypost.domain.content import Action, Content, Urgency
from waypost.domain.delivery import Delivery
from waypost.domain.message import message_of
from waypost.domain.outcome import Taken, Unanswered
from waypost.domain.retry import RetryRules
from waypost.domain.settlement import Again
from waypost.domain.time import Instant
from waypost.lab import Lab
from waypost.lab.screen import screen
from waypost.pipeline.settle import change_of
from waypost.ports.sender import Sender

pytestmark = pytest.mark.asyncio

IMAGE = "https://img.example.com/1.png"
TEXT = Content(title="Title", body="Body")


def content(channel: Channel, override: dict[str, Any], **fields: Any) -> Content:
    """A title, a body, and what only *channel* is told."""
    return Content(title="Title", body="Body", overrides={channel: override}, **fields)


@shows("S1-48", "S3-53", "S3-54", "S3-115")
async def test_android_gets_channel_sound_colour_and_priority(lab: Lab, fcm: FcmSender) -> None:
    """Requirements S3-54, with the fields that Waypost has no word for passed through (S3-115)."""
    override = {
        "data": {"layout": "custom", "progress": {"now": 3, "of": 10}},
        "android": {"notification": {"color": "#FF0000", "click_action": "OPEN"}},
    }
    what = content(
        Channel("fcm"), override, data={"order": 7}, android_channel="default", sound="default", image=IMAGE,
        actions=(Action("open", "Open"),),
    )  # fmt: skip
    assert isinstance(await outcome(fcm, to_android(lab, fresh(what, urgency=Urgency.HIGH))), Taken)
    (record,) = accepted(lab, "fcm")
    message = payload_of(lab, record)["message"]
    assert message["notification"] == {"title": "Title", "body": "Body", "image": IMAGE}
    assert message["android"]["priority"] == "HIGH"
    shown = message["android"]["notification"]
    assert (shown["channel_id"], shown["sound"], shown["color"]) == ("default", "default", "#FF0000")
    data = message["data"]
    assert (data["order"], data["layout"], data["progress"]) == ("7", "custom", '{"now":3,"of":10}')
    assert data["waypost_actions"] == '[{"id":"open","title":"Open"}]'


@shows("S3-55", "S3-116")
async def test_ios_gets_sound_badge_media_and_keys_beside_aps(lab: Lab, apns: ApnsSender) -> None:
    """Requirements S3-55 and S3-116."""
    what = content(
        Channel("apns"), {"aps": {"content-available": 1}}, data={"order": 7}, sound="default", badge=5, image=IMAGE,
        category="ORDER", actions=(Action("open", "Open"),),
    )  # fmt: skip
    assert isinstance(await outcome(apns, to_ios(lab, fresh(what))), Taken)
    (record,) = accepted(lab, "apns")
    said = payload_of(lab, record)
    assert said["aps"] == {
        "alert": {"title": "Title", "body": "Body"},
        "sound": "default",
        "badge": 5,
        "category": "ORDER",
        "mutable-content": 1,
        "content-available": 1,
    }
    assert (said["order"], said["waypost_image"]) == (7, IMAGE)
    assert said["waypost_actions"] == [{"id": "open", "title": "Open"}]
    assert headers_of(lab, record)["apns-push-type"] == "alert"


@shows("S3-117")
async def test_a_service_worker_gets_icon_image_actions_and_require_interaction(
    lab: Lab, webpush: WebPushSender
) -> None:
    """Requirements S3-117: decrypted as the browser would."""
    what = content(
        Channel("webpush"), {"requireInteraction": True}, icon=IMAGE, image=IMAGE, actions=(Action("open", "Open"),)
    )
    assert isinstance(await outcome(webpush, to_web(lab, fresh(what))), Taken)
    (record,) = accepted(lab, "webpush")
    said = payload_of(lab, record)
    assert (said["icon"], said["image"], said["requireInteraction"]) == (IMAGE, IMAGE, True)
    assert said["actions"] == [{"action": "open", "title": "Open"}]


@shows("S2-15", "S2-26")
async def test_a_repeated_message_replaces_the_first_on_the_device(
    lab: Lab, apns: ApnsSender, fcm: FcmSender, webpush: WebPushSender
) -> None:
    """Of two sends under one collapse key, whatever they say, one is to be seen (requirements S2-26)."""
    devices: list[tuple[Sender, Delivery]] = [
        (apns, to_ios(lab, fresh(TEXT))),
        (fcm, to_android(lab, fresh(TEXT))),
        (webpush, to_web(lab, fresh(TEXT))),
    ]
    for title in ("1 : 0", "2 : 0"):
        what = fresh(Content(title=title, collapse_key="match7"))
        for sender, one in devices:
            assert isinstance(await outcome(sender, msgspec.structs.replace(one, message=message_of(what))), Taken)
    places = [
        {headers_of(lab, record)["apns-collapse-id"] for record in accepted(lab, "apns")},
        {payload_of(lab, record)["message"]["android"]["collapse_key"] for record in accepted(lab, "fcm")},
        {headers_of(lab, record)["topic"] for record in accepted(lab, "webpush")},
    ]
    assert places == [{"match7"}] * 3
    assert len(accepted(lab, "fcm")) == 2
    for gateway in ("apns", "fcm", "webpush"):
        (token,) = {record.token for record in accepted(lab, gateway)}
        assert [(each.title, each.place) for each in screen(lab.records, token)] == [("2 : 0", "match7")]


@shows("S2-15")
async def test_what_was_taken_without_an_answer_is_sent_again_and_seen_once(
    lab: Lab, apns: ApnsSender, fcm: FcmSender, webpush: WebPushSender
) -> None:
    """The connection drops behind the message: the same delivery is sent again, and replaces itself on the device."""
    what = fresh(Content(title="Your code", collapse_key="code"))
    devices: list[tuple[str, Sender, Delivery]] = [
        ("apns", apns, to_ios(lab, what)),
        ("fcm", fcm, to_android(lab, what)),
        ("webpush", webpush, to_web(lab, what)),
    ]
    for gateway, sender, one in devices:
        await lab.script(script({"where": gateway, "match": {"times": 1}, "do": {"accept_then_drop": True}}))
        lost = await outcome(sender, one)
        assert isinstance(lost, Unanswered)
        assert isinstance(change_of(one, lost, RetryRules(), Instant(1), 0.0, Instant(0)).settlement, Again)
        assert isinstance(await outcome(sender, msgspec.structs.replace(one, attempt=2)), Taken)
        (token,) = {record.token for record in accepted(lab, gateway)}
        assert [(each.title, each.place) for each in screen(lab.records, token)] == [("Your code", "code")]


@shows("S1-133")
async def test_nothing_but_messages_is_asked_of_a_provider(lab: Lab, apns: ApnsSender) -> None:
    """No feedback service: dead tokens are known from the answers alone (requirements S1-133)."""
    batch = [to_ios(lab, fresh(TEXT)) for _ in range(20)]
    await outcomes(apns, batch)
    paths = {content.path for content in map(lab.records.content, range(lab.records.seq)) if content is not None}
    assert paths == {f"/3/device/{one.device.token}" for one in batch}
    assert lab.records.seq == 20


@shows("S1-30", "S1-87")
async def test_ten_thousand_sends_share_the_same_connections(
    lab: Lab, apns: ApnsSender, apns_settings: ApnsSettings
) -> None:
    """Requirements S1-30: no more of them at the end than after the first batch."""
    shared = fresh(TEXT)
    batch = [to_ios(lab, shared) for _ in range(500)]
    opened = []
    for _ in range(20):
        assert all(isinstance(got, Taken) for got in await outcomes(apns, batch))
        opened.append(lab.records.counts["apns"].connections_opened)
    assert len(set(opened[1:])) == 1
    assert opened[-1] <= apns_settings.connections
