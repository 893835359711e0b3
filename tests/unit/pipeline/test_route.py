"""Routing again: what became of a device between two attempts decides whether there is another."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.adapters.deliveries import NOW, delivery, notification
from tests.unit.domain.made import CHANNELS
from waypost.domain.address import UNROUTED
from waypost.domain.audience import Audience
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import OpenTarget, Target
from waypost.domain.device import Device, Platform, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.recipient import Recipient
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.settlement import Suppressed
from waypost.pipeline.route import plan, poisoned
from waypost.ports.work import WorkItem

APNS_OF_DEMO = CredentialId(AppId("demo"), Channel("apns"))
TABLE = RoutingTable(CHANNELS, {AppId("demo"): {Channel("apns"): (APNS_OF_DEMO,)}}, RULES)
DEVICE = delivery(Platform("ios"), "old").device
AGAIN = WorkItem(notification(), (OpenTarget(0, DEVICE.device_id, Channel("apns"), attempt=1, retries=1),))


def now_as(**changes: object) -> Device:
    """The device as it was registered since."""
    return msgspec.structs.replace(DEVICE, **changes)


@pytest.mark.parametrize(
    ("since", "why"),
    [
        (now_as(active=False), "device_gone"),
        (now_as(device_id=DeviceId("other")), "device_gone"),
        (now_as(platform=Platform("unknown")), "unknown_platform"),
        (now_as(platform=Platform("android")), "no_credential"),
        (now_as(token_use=TokenUse.VOIP), "other_token_use"),
    ],
)
def test_a_device_that_is_not_what_it_was_gets_nothing(since: Device, why: str) -> None:
    planned = plan(AGAIN, Recipient([since]), TABLE, NOW)
    assert planned.deliveries == ()
    assert [change.settlement for change in planned.changes] == [Suppressed(why)]


def test_a_new_token_of_the_same_use_is_used() -> None:
    (again,) = plan(AGAIN, Recipient([now_as(token="new")]), TABLE, NOW).deliveries
    assert (again.device.token, again.attempt, again.retries_made) == ("new", 2, 1)


def test_poison_names_its_address_where_one_is_known() -> None:
    """All who listen are named by the notification itself; whose devices they would have been was not found out."""
    to = Audience(Channel("fcm"), "topic", "news")
    assert poisoned(WorkItem(notification(Content(to=to)), None), NOW).targets == (
        Target(0, DeviceId("fcm:topic:news"), Channel("fcm")),
    )
    assert poisoned(WorkItem(notification(), None), NOW).targets == (Target(0, UNROUTED, None),)


def test_all_who_listen_are_one_target_also_the_second_time() -> None:
    """No device is behind it, and none of a user who happens to have its name."""
    to = Audience(Channel("apns"), "channel", "abc=")
    told = msgspec.structs.replace(notification(Content(to=to)), user_id=UserId(to.label))
    first = plan(WorkItem(told, None), Recipient([DEVICE]), TABLE, NOW)
    assert first.targets == (Target(0, DeviceId("apns:channel:abc="), Channel("apns")),)
    again = WorkItem(told, (OpenTarget(0, DeviceId(to.label), Channel("apns"), attempt=1, retries=1),))
    for planned in (first, plan(again, Recipient([DEVICE]), TABLE, NOW)):
        (one,) = planned.deliveries
        assert (one.address, one.channel) == (to, "apns")
    (without,) = plan(again, Recipient(), RoutingTable(CHANNELS, {}, RULES), NOW).changes
    assert without.settlement == Suppressed("no_credential")
