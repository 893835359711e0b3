"""Every push type is what the lab's Apple takes, with the record of what was changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.adapters.senders.bench import accepted, fresh, headers_of, outcome, to_ios
from tests.shows import shows
from tests.unit.adapters.deliveries import delivery
from waypost.channels.apns.push_types import RULES
from waypost.channels.apns.sender import ApnsSender
from waypost.domain.channel import Channel
from waypost.domain.content import ApnsPushType, Content, Urgency
from waypost.domain.device import Platform
from waypost.domain.outcome import Taken
from waypost.lab import Lab

START = {"event": "start", "attributes-type": "Ride", "attributes": {"from": "A"}, "content-state": {"eta": 5}}
CONTENTS: list[tuple[ApnsPushType, Content]] = [
    (ApnsPushType.ALERT, Content(title="T")),
    (ApnsPushType.BACKGROUND, Content(data={"a": 1})),
    (ApnsPushType.LOCATION, Content()),
    (ApnsPushType.VOIP, Content(data={"call": "7"})),
    (ApnsPushType.COMPLICATION, Content(data={"a": 1})),
    (ApnsPushType.FILEPROVIDER, Content(data={"container-identifier": "x", "domain": "y"})),
    (ApnsPushType.PUSHTOTALK, Content(data={"a": 1})),
    (ApnsPushType.WIDGETS, Content()),
    (ApnsPushType.CONTROLS, Content()),
    (ApnsPushType.MDM, Content(data={"mdm": "magic"})),
]


def _activity(aps: dict[str, Any], **fields: Any) -> tuple[ApnsPushType, Content]:
    return ApnsPushType.LIVEACTIVITY, Content(overrides={Channel("apns"): {"aps": aps}}, **fields)


CONTENTS += [
    _activity(START, title="Your ride"),
    _activity(START | {"input-push-token": 1}, title="Your ride"),
    _activity({"event": "update", "content-state": {"eta": 4}}),
    _activity({"event": "update", "content-state": {"eta": 1}}, title="Almost there", body="1 minute"),
    _activity({"event": "end", "dismissal-date": 1_800_000_000}),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("push_type", "content"), CONTENTS)
@pytest.mark.parametrize("urgency", [Urgency.HIGH, Urgency.LOW])
async def test_each_push_type_is_taken(
    lab: Lab, apns: ApnsSender, push_type: ApnsPushType, content: Content, urgency: Urgency
) -> None:
    topic = "com.example.demo" + RULES[push_type].suffix
    (token,) = lab.tokens.make("ios", 1, topic=topic, environment="production")
    what = fresh(_typed(content, push_type), kind=push_type.kind, urgency=urgency)
    assert isinstance(await outcome(apns, delivery(Platform("ios"), token, what)), Taken)
    (record,) = accepted(lab, "apns")
    assert headers_of(lab, record)["apns-topic"] == topic
    assert record.push_type == push_type.value


def _typed(content: Content, push_type: ApnsPushType) -> Content:
    return msgspec.structs.replace(content, push_type=push_type)


@shows("S1-49")
@pytest.mark.asyncio
async def test_a_critical_alert_without_the_entitlement_is_taken_and_says_what_was_changed(
    lab: Lab, apns: ApnsSender
) -> None:
    got = await outcome(apns, to_ios(lab, fresh(Content(title="T"), urgency=Urgency.CRITICAL)))
    assert isinstance(got, Taken)
    assert got.note.startswith("sent as time-sensitive: ")
