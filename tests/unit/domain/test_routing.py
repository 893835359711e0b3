"""Routing: which devices get it, and why the others do not."""

from __future__ import annotations

import pytest

from tests.unit.domain.made import CHANNELS, device, notification
from waypost.domain.channel import Channel
from waypost.domain.content import ApnsPushType, Content
from waypost.domain.delivery import Target
from waypost.domain.device import Platform, TokenUse
from waypost.domain.ids import DeviceId
from waypost.domain.routing import DEVICE_NOT_FOUND, NO_CREDENTIAL, OTHER_USE, UNKNOWN_PLATFORM, route

ALL = frozenset(CHANNELS.values())
IOS = device(device_id=DeviceId("i"), platform=Platform("ios"))
ANDROID = device(device_id=DeviceId("a"), platform=Platform("android"))
WEB = device(device_id=DeviceId("w"), platform=Platform("web"))
IMPORTED = device(device_id=DeviceId("u"), platform=Platform("unknown"))
STOPPED = device(device_id=DeviceId("s"), active=False)


def test_every_active_device_is_a_target_on_its_channel() -> None:
    routed = route(notification(), [IOS, ANDROID, WEB], CHANNELS, ALL)
    assert routed.targets == (
        Target(0, DeviceId("i"), Channel("apns")),
        Target(1, DeviceId("a"), Channel("fcm")),
        Target(2, DeviceId("w"), Channel("webpush")),
    )
    assert routed.addresses == {0: IOS, 1: ANDROID, 2: WEB}


def test_a_user_without_devices_has_no_targets() -> None:
    routed = route(notification(), [], CHANNELS, ALL)
    assert (routed.targets, routed.addresses) == ((), {})


def test_a_deactivated_device_is_no_target() -> None:
    assert route(notification(), [STOPPED], CHANNELS, ALL).targets == ()


def test_a_notification_may_be_narrowed_to_named_devices() -> None:
    routed = route(notification(device_ids=(DeviceId("w"),)), [IOS, WEB], CHANNELS, ALL)
    assert routed.targets == (Target(0, DeviceId("w"), Channel("webpush")),)


@pytest.mark.parametrize("devices", [[IOS], [IOS, STOPPED]])
def test_a_named_device_that_is_not_there_says_so(devices: list[object]) -> None:
    named = notification(device_ids=(DeviceId("s"), DeviceId("i"), DeviceId("s")))
    routed = route(named, devices, CHANNELS, ALL)  # type: ignore[arg-type]  # parametrize loses the type
    assert routed.targets == (
        Target(0, DeviceId("i"), Channel("apns")),
        Target(1, DeviceId("s"), None, DEVICE_NOT_FOUND),
    )
    assert set(routed.addresses) == {0}


def test_an_unknown_platform_is_skipped_with_its_reason() -> None:
    routed = route(notification(), [IMPORTED, IOS], CHANNELS, ALL)
    assert routed.targets[0] == Target(0, DeviceId("u"), None, UNKNOWN_PLATFORM)
    assert routed.addresses == {1: IOS}


def test_a_channel_without_a_credential_is_skipped_with_its_reason() -> None:
    routed = route(notification(), [IOS, ANDROID], CHANNELS, {Channel("fcm")})
    assert routed.targets[0] == Target(0, DeviceId("i"), Channel("apns"), NO_CREDENTIAL)
    assert routed.addresses == {1: ANDROID}


def test_numbers_are_positions_without_gaps() -> None:
    named = notification(device_ids=tuple(DeviceId(name) for name in "xiuwy"))
    routed = route(named, [IOS, IMPORTED, WEB, ANDROID], CHANNELS, ALL)
    assert [target.n for target in routed.targets] == list(range(5))


CALLS = device(device_id=DeviceId("c"), platform=Platform("ios"), token_use=TokenUse.VOIP)


def test_a_push_goes_to_the_tokens_of_its_use_alone() -> None:
    call = notification(content=Content(push_type=ApnsPushType.VOIP))
    assert route(call, [IOS, ANDROID, CALLS], CHANNELS, ALL).targets == (Target(0, DeviceId("c"), Channel("apns")),)
    everybody = route(notification(), [IOS, ANDROID, CALLS], CHANNELS, ALL).targets
    assert [target.device_id for target in everybody] == ["i", "a"]


def test_a_named_device_whose_token_is_for_another_use_is_suppressed_with_that_reason() -> None:
    routed = route(notification(device_ids=(DeviceId("c"), DeviceId("i"))), [IOS, CALLS], CHANNELS, ALL)
    assert routed.targets == (
        Target(0, DeviceId("i"), Channel("apns")),
        Target(1, DeviceId("c"), None, OTHER_USE),
    )
