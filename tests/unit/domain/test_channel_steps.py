"""Channels of a notification: what makes no sense, and who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from tests.shows import shows
from tests.unit.domain.made import CHANNELS, NOW, device, notification
from waypost.domain.channel import PUSH, Channel
from waypost.domain.channel_steps import SubmittedChannels, step_faults, steps_of
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import OpenTarget
from waypost.domain.device import EMAIL, PHONE, Device, Platform
from waypost.domain.drafting import draft
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId
from waypost.domain.notification import Guarantee
from waypost.domain.recipient import Recipient
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import OTHER_CHANNEL, RULES
from waypost.domain.settlement import Suppressed
from waypost.domain.status import DeliveryStatus
from waypost.domain.submission import Defaults, NotificationType, Submission
from waypost.domain.waits import WaitsFor
from waypost.pipeline.route import plan
from waypost.ports.work import WorkItem

DEMO = AppId("demo")
ALL = {**CHANNELS, PHONE: Channel("sms"), EMAIL: Channel("email")}
FAMILIES = dict.fromkeys(CHANNELS.values(), PUSH) | {Channel("sms"): "sms", Channel("email"): "email"}
IOS = device(device_id=DeviceId("i"), platform=Platform("ios"))
WEB = device(device_id=DeviceId("w"), platform=Platform("web"))
MAILBOX = device(device_id=DeviceId("email"), platform=EMAIL, token="ann@example.com")
TELEPHONE = device(device_id=DeviceId("phone"), platform=PHONE, token="+4917012345678")
EVERY = (IOS, WEB, MAILBOX, TELEPHONE)
PUSH_30 = {"to": "push", "until": "delivered", "for": "30s"}


def table(held: Mapping[Platform, Channel] = ALL) -> RoutingTable:
    """The rules of the core, in an app with a credential of each channel *held*."""
    credentials = {channel: (CredentialId(DEMO, channel),) for channel in held.values()}
    return RoutingTable(ALL, {DEMO: credentials}, RULES, families=FAMILIES)


def content(said: Any) -> Content:
    """A content for channels as JSON says them."""
    return Content(title="Code", channels=steps_of(msgspec.convert(said, SubmittedChannels)))


def routed(said: Any, devices: Sequence[Device] = EVERY) -> dict[str, tuple[str, ...]]:
    """Each target by name, in order, with those that it waits for."""
    found = table().route(notification(content=content(said)), Recipient(devices), NOW).targets
    return {each.name: () if each.after is None else each.after.names for each in found}


@shows("S4-04")
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param([], {"i": (), "w": ()}, id="none named, push"),
        pytest.param(["push"], {"i": (), "w": ()}, id="push"),
        pytest.param(["apns"], {"i": ()}, id="one channel of push"),
        pytest.param(["email", "push"], {"email": (), "i": (), "w": ()}, id="side by side, in their order"),
        pytest.param([PUSH_30, "sms"], {"i": (), "w": (), "phone": ("i", "w")}, id="one after the other"),
        pytest.param([PUSH_30, "sms", "email"], {"i": (), "w": (), "phone": ("i", "w"), "email": ("i", "w")}, id="two"),
        pytest.param(
            [PUSH_30, {"to": "sms", "for": "5m"}, "email"],
            {"i": (), "w": (), "phone": ("i", "w"), "email": ("phone",)},
            id="a chain",
        ),
        pytest.param(["email", PUSH_30, "sms"], {"email": (), "i": (), "w": (), "phone": ("i", "w")}, id="beside"),
    ],
)
def test_what_waits_for_what(said: Any, expected: dict[str, tuple[str, ...]]) -> None:
    assert routed(said) == expected
    assert list(routed(said)) == list(expected)


def test_a_step_without_targets_is_not_waited_for() -> None:
    assert routed([PUSH_30, "sms"], [TELEPHONE]) == {"phone": ()}
    chain = [PUSH_30, {"to": "sms", "for": "5m"}, "email"]
    assert routed(chain, [IOS, MAILBOX]) == {"i": (), "email": ("i",)}, "it waits for the step before that"


def test_a_device_that_is_named_is_reached_whatever_its_channel() -> None:
    """Unless channels are named as well: then it says why it is not."""
    named = notification(device_ids=(DeviceId("email"),))
    assert [each.name for each in table().route(named, Recipient(EVERY), NOW).targets] == ["email"]
    both = msgspec.structs.replace(named, content=content(["push"]))
    (found,) = table().route(both, Recipient(EVERY), NOW).targets
    assert found.settlement == Suppressed(OTHER_CHANNEL)


def test_a_fallback_waits_for_every_target_of_its_step_and_is_sent_once_at_most() -> None:
    item = WorkItem(notification(content=content([PUSH_30, "sms"])), None)
    made = plan(item, Recipient(EVERY), table(), NOW)
    assert made.targets is not None
    assert [each.waits for each in made.targets] == [None, None, WaitsFor((0, 1), 30, DeliveryStatus.DELIVERED)]
    assert {each.guarantee for each in made.deliveries} == {Guarantee.AT_LEAST_ONCE}
    later = WorkItem(item.notification, (OpenTarget(2, made.targets[2].device_id, Channel("sms"), 0),))
    (fallback,) = plan(later, Recipient(EVERY), table(), NOW).deliveries
    assert (fallback.channel, fallback.guarantee) == ("sms", Guarantee.AT_MOST_ONCE)


@pytest.mark.parametrize(
    ("said", "faults"),
    [
        (["push", "sms"], {}),
        ([PUSH_30, "sms"], {}),
        ([{"to": "push", "for": "1m"}, "sms"], {}),
        (["push", "push"], {"channels[1]": "names push twice"}),
        (
            [{"to": "push", "until": "opened"}, "sms"],
            {"channels[0].for": "required beside until: how long to wait, such as 30s"},
        ),
        (["sms", PUSH_30], {"channels[1].for": "nothing comes after it; leave it out, or name what takes over"}),
        (
            [{"to": "push", "for": "2h"}, "sms"],
            {"channels[0].for": "what comes after it would be too late: the ttl is 3600 seconds"},
        ),
    ],
)
def test_what_makes_no_sense_is_named(said: Any, faults: dict[str, str]) -> None:
    found = step_faults(msgspec.convert(said, SubmittedChannels), 3600)
    assert {each.path: each.why for each in found} == faults


@pytest.mark.parametrize("said", [["Push"], [""], [{"to": "push", "for": "30"}], [{"to": "push", "for": "0s"}], [7]])
def test_what_is_no_channel_is_refused(said: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(said, SubmittedChannels)


def test_an_app_says_which_channels_are_meant_where_none_is_named() -> None:
    defaults = Defaults(channels=("push", "email"), channels_by_type={NotificationType("otp"): ("sms",)})

    def drafted(**fields: Any) -> list[str]:
        submission = Submission(user_id="ann", title="Code", **fields)
        made = draft(submission, NotificationId(b"n" * 16), DEMO, CallerId("c"), defaults, NOW)
        return [step.to for step in made.notification.content.channels]

    assert drafted() == ["push", "email"]
    assert drafted(type="otp") == ["sms"]
    assert drafted(channels=("apns",)) == ["apns"]
    assert drafted(device_ids=("i",)) == [], "who names a device says where it goes"
    with pytest.raises(InvalidRequest):
        drafted(channels=("push", "push"))


def test_a_short_time_to_live_is_not_refused_for_what_the_app_says() -> None:
    """What comes after expires with the notification; the caller named no channels, and cannot be at fault."""
    (step, after) = msgspec.convert([PUSH_30, "sms"], SubmittedChannels)
    submission = Submission(user_id="ann", title="Code", ttl=10)
    made = draft(submission, NotificationId(b"n" * 16), DEMO, CallerId("c"), Defaults(channels=(step, after)), NOW)
    assert [each.to for each in made.notification.content.channels] == ["push", "sms"]
    said = msgspec.structs.replace(submission, channels=(step, after))
    with pytest.raises(InvalidRequest):
        draft(said, NotificationId(b"n" * 16), DEMO, CallerId("c"), Defaults(), NOW)


def test_what_nobody_serves_is_told_by_a_receipt() -> None:
    imported = device(device_id=DeviceId("u"), platform=Platform("unknown"))
    found = table().route(notification(content=content(["email", "push"])), Recipient([imported, IOS]), NOW).targets
    assert {each.name: isinstance(each.settlement, Suppressed) for each in found} == {"i": False, "u": True}
