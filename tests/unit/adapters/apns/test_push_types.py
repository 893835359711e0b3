"""Every push type: its topic, priority and limit, what it may hold, and which devices it is for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.shows import shows
from tests.unit.adapters.deliveries import NOW, TEXT_ID, notification
from waypost.channels.apns.payload import Rendering, faults, rendered
from waypost.channels.apns.push_types import RULES
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push.payload import named
from waypost.domain.audience import Audience
from waypost.domain.channel import APNS, Channel
from waypost.domain.content import ApnsPushType, Content, Kind, Urgency
from waypost.domain.device import TokenUse, token_use_of
from waypost.domain.message import message_of, rendered_for
from waypost.domain.notification import Notification
from waypost.domain.outcome import Refused

SETTINGS = ApnsSettings(key_file="k", key_id="ABCDE12345", team_id="FGHIJ67890", topic="com.example.demo")
ENTITLED = msgspec.structs.replace(SETTINGS, critical_alerts=True)
START = {"event": "start", "attributes-type": "Ride", "attributes": {"from": "A"}, "content-state": {"eta": 5}}

# Type, topic suffix, priority when urgent and when normal, payload limit.
ROWS = [
    ("alert", "", "10", "10", 4096),
    ("background", "", "5", "5", 4096),
    ("location", ".location-query", "10", "5", 4096),
    ("voip", ".voip", "10", "10", 5120),
    ("complication", ".complication", "10", "5", 4096),
    ("fileprovider", ".pushkit.fileprovider", "10", "5", 4096),
    ("liveactivity", ".push-type.liveactivity", "10", "5", 4096),
    ("pushtotalk", ".voip-ptt", "10", "10", 4096),
    ("widgets", ".push-type.widgets", "10", "5", 4096),
    ("controls", ".push-type.controls", "10", "5", 4096),
    ("mdm", "", "10", "5", 4096),
]


def push(push_type: ApnsPushType, aps: dict[str, Any] | None = None, **fields: Any) -> Notification:
    overrides = {} if aps is None else {Channel("apns"): {"aps": aps}}
    urgency = fields.pop("urgency", Urgency.NORMAL)
    if push_type is ApnsPushType.MDM:
        overrides, fields["data"] = {}, {"mdm": fields.get("data", {}).get("x", "magic")}
    content = Content(push_type=push_type, overrides=overrides, **fields)
    return notification(content, kind=push_type.kind, urgency=urgency)


def rendering(what: Notification, settings: ApnsSettings = SETTINGS) -> Rendering:
    made = rendered(rendered_for(message_of(what), APNS), settings, NOW)
    assert isinstance(made, Rendering)
    return msgspec.structs.replace(made, body=named(made.body, what.id))


def aps(what: Notification, settings: ApnsSettings = SETTINGS) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(rendering(what, settings).body)["aps"]
    return found


@pytest.mark.parametrize(("word", "suffix", "urgent", "normal", "limit_bytes"), ROWS)
def test_each_type_has_its_topic_priority_and_limit(
    word: str, suffix: str, urgent: str, normal: str, limit_bytes: int
) -> None:
    for urgency, priority in ((Urgency.HIGH, urgent), (Urgency.NORMAL, normal)):
        made = rendering(push(ApnsPushType(word), {"event": "update", "content-state": {}}, urgency=urgency))
        headers = dict(made.headers)
        assert headers["apns-topic"] == f"com.example.demo{suffix}"
        assert headers["apns-push-type"] == word
        assert headers["apns-priority"] == priority
        assert made.limit_bytes == limit_bytes


def test_the_rows_above_are_all_types() -> None:
    assert [row[0] for row in ROWS] == [push_type.value for push_type in ApnsPushType if push_type in RULES]
    assert set(RULES) == set(ApnsPushType)


@pytest.mark.parametrize(("word", "limit_bytes"), [(row[0], row[4]) for row in ROWS])
def test_a_payload_over_the_limit_of_its_type_is_refused_with_its_size(word: str, limit_bytes: int) -> None:
    push_type = ApnsPushType(word)
    empty = len(rendering(push(push_type, data={"x": ""})).body)
    fits = rendering(push(push_type, data={"x": "y" * (limit_bytes - empty)}))
    assert len(fits.body) == limit_bytes
    over = rendered(
        rendered_for(message_of(push(push_type, data={"x": "y" * (limit_bytes - empty + 1)})), APNS), SETTINGS, NOW
    )
    assert over == Refused("payload_too_large", f"{limit_bytes + 1} bytes, limit {limit_bytes}")


def test_where_it_may_a_body_is_shortened_and_data_is_not() -> None:
    what = notification(Content(title="T", body="é" * 5000, data={"x": "y" * 500}))
    made = rendering(what, msgspec.structs.replace(SETTINGS, fit="trim"))
    assert len(made.body) in (4095, 4096)
    document = msgspec.json.decode(made.body)
    assert document["aps"]["alert"]["body"].endswith("é…")
    assert document["x"] == "y" * 500
    too_much = notification(Content(title="T", data={"x": "y" * 5000}))
    assert isinstance(
        rendered(rendered_for(message_of(too_much), APNS), msgspec.structs.replace(SETTINGS, fit="trim"), NOW), Refused
    )


def test_widgets_and_controls_are_told_that_their_content_changed() -> None:
    for push_type in (ApnsPushType.WIDGETS, ApnsPushType.CONTROLS):
        body = msgspec.json.decode(rendering(push(push_type)).body)
        assert body == {"aps": {"content-changed": True}, "waypost_id": TEXT_ID}


def test_a_call_is_the_apps_own_data() -> None:
    body = msgspec.json.decode(rendering(push(ApnsPushType.VOIP, data={"call": "7"})).body)
    assert body == {"call": "7", "aps": {}, "waypost_id": TEXT_ID}


def test_a_managed_device_is_told_nothing_but_its_magic_word() -> None:
    assert msgspec.json.decode(rendering(push(ApnsPushType.MDM)).body) == {"mdm": "magic"}


@pytest.mark.parametrize(
    ("data", "overrides", "named"),
    [
        ({}, {}, ["data.mdm"]),
        ({"mdm": 7}, {}, ["data.mdm"]),
        ({"mdm": "magic", "x": 1}, {}, ["data.x"]),
        ({"mdm": "magic"}, {Channel("apns"): {"aps": {}}}, ["overrides.apns"]),
        ({"mdm": "magic"}, {}, []),
    ],
)
def test_a_managed_device_would_not_understand_more_or_less(
    data: dict[str, Any], overrides: dict[Channel, Any], named: list[str]
) -> None:
    content = Content(push_type=ApnsPushType.MDM, data=data, overrides=overrides)
    assert [fault.path for fault in faults(content, Kind.SILENT)] == named


def test_a_live_activity_is_started_updated_and_ended() -> None:
    said_at = NOW // 1000
    started = push(ApnsPushType.LIVEACTIVITY, START, title="Your ride", body="5 minutes", sound="horn.aiff")
    alert = {"title": "Your ride", "body": "5 minutes", "sound": "horn.aiff"}
    assert aps(started) == START | {"timestamp": said_at, "alert": alert}
    update = {"event": "update", "content-state": {"eta": 4}, "stale-date": said_at + 60, "relevance-score": 75}
    assert aps(push(ApnsPushType.LIVEACTIVITY, update)) == update | {"timestamp": said_at}
    end = {"event": "end", "dismissal-date": said_at, "timestamp": said_at + 1}
    assert aps(push(ApnsPushType.LIVEACTIVITY, end)) == end
    for what in (started, push(ApnsPushType.LIVEACTIVITY, update), push(ApnsPushType.LIVEACTIVITY, end)):
        assert faults(what.content, what.kind) == []


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({}, "event"),
        ({"event": "stop"}, "event"),
        ({"event": "update"}, "content-state"),
        ({"event": "update", "content-state": "x"}, "content-state"),
        ({"event": "end", "dismissal-date": "now"}, "dismissal-date"),
        ({"event": "end", "timestamp": True}, "timestamp"),
        (START, "alert"),
        ({key: value for key, value in START.items() if key != "attributes"} | {"alert": {}}, "attributes"),
        ({key: value for key, value in START.items() if key != "attributes-type"} | {"alert": {}}, "attributes-type"),
        (START | {"alert": {}, "input-push-channel": 1}, "input-push-channel"),
    ],
)
def test_a_live_activity_that_apple_would_drop_is_refused_by_its_key(said: dict[str, Any], named: str) -> None:
    what = push(ApnsPushType.LIVEACTIVITY, said)
    assert [fault.path for fault in faults(what.content, what.kind)] == [f"overrides.apns.aps.{named}"]


@pytest.mark.parametrize("push_type", [ApnsPushType.VOIP, ApnsPushType.WIDGETS])
def test_what_would_be_shown_has_no_place_beside_an_alert(push_type: ApnsPushType) -> None:
    what = push(push_type, {"alert": "x"})
    assert "overrides.apns.aps.alert" in [fault.path for fault in faults(what.content, what.kind)]


@pytest.mark.parametrize(
    ("content", "use"),
    [
        (Content(title="T"), TokenUse.ALERT),
        (Content(push_type=ApnsPushType.BACKGROUND), TokenUse.ALERT),
        (push(ApnsPushType.LIVEACTIVITY, START).content, TokenUse.LIVEACTIVITY_START),
        (push(ApnsPushType.LIVEACTIVITY, {"event": "end"}).content, TokenUse.LIVEACTIVITY),
        (Content(push_type=ApnsPushType.VOIP), TokenUse.VOIP),
        (Content(push_type=ApnsPushType.WIDGETS), TokenUse.WIDGETS),
    ],
)
def test_each_type_has_tokens_of_its_own(content: Content, use: TokenUse) -> None:
    assert token_use_of(content) is use


@pytest.mark.parametrize(
    ("push_type", "event", "named"),
    [
        (ApnsPushType.LIVEACTIVITY, "update", []),
        (ApnsPushType.LIVEACTIVITY, "start", ["overrides.apns.aps.event"]),
        (None, None, ["push_type"]),
    ],
)
def test_a_broadcast_channel_takes_updates_of_live_activities_alone(
    push_type: ApnsPushType | None, event: str | None, named: list[str]
) -> None:
    overrides = {} if event is None else {APNS: {"aps": START | {"event": event}}}
    content = Content(title="T", push_type=push_type, overrides=overrides, to=Audience(APNS, "channel", "abc="))
    assert [fault.path for fault in faults(content, Kind.VISIBLE)] == named


CRITICAL = notification(Content(title="T", sound="siren.caf"), urgency=Urgency.CRITICAL)


def test_a_critical_alert_sounds_although_the_device_is_muted() -> None:
    assert aps(CRITICAL, ENTITLED) == {
        "alert": {"title": "T"},
        "interruption-level": "critical",
        "sound": {"critical": 1, "name": "siren.caf", "volume": 1.0},
    }
    assert aps(notification(urgency=Urgency.CRITICAL), ENTITLED)["sound"]["name"] == "default"
    assert rendering(CRITICAL, ENTITLED).note == ""


@shows("S1-49")
@pytest.mark.parametrize("level", ["time-sensitive", "active"])
def test_without_the_entitlement_it_is_downgraded_and_the_record_says_so(level: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, critical_fallback=level)
    assert aps(CRITICAL, settings) == {
        "alert": {"title": "T"},
        "interruption-level": level,
        "sound": "siren.caf",
    }
    assert rendering(CRITICAL, settings).note.startswith(f"sent as {level}: the setting critical_alerts is off")


@shows("S1-49")
def test_without_the_entitlement_it_is_refused_where_the_setting_says_so() -> None:
    settings = msgspec.structs.replace(SETTINGS, critical_fallback="refuse")
    refused = rendered(rendered_for(message_of(CRITICAL), APNS), settings, NOW)
    assert isinstance(refused, Refused)
    assert refused.code == "critical_not_entitled"
    silent = notification(Content(data={"a": 1}), kind=Kind.SILENT, urgency=Urgency.CRITICAL)
    assert isinstance(rendered(rendered_for(message_of(silent), APNS), settings, NOW), Rendering)
