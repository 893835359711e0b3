"""What of a subscription is refused when it is registered."""

from __future__ import annotations

import pytest

from tests.unit.adapters.webpush.test_encryption import AUTH_SECRET, UA_PUBLIC
from waypost.adapters.webpush.registration import registration_check
from waypost.adapters.webpush.settings import WebPushSettings
from waypost.domain.device import Platform, Registration, SubscriptionKeys
from waypost.domain.ids import AppId, DeviceId, UserId

GOOD = "https://fcm.googleapis.com/fcm/send/abc"
CHECK = registration_check(AppId("demo"), WebPushSettings(vapid_private_key_file="v", subject="mailto:a@b.example"))


def registration(token: str, p256dh: bytes = UA_PUBLIC, auth: bytes = AUTH_SECRET) -> Registration:
    keys = SubscriptionKeys(p256dh=p256dh, auth=auth)
    return Registration(AppId("demo"), UserId("u"), DeviceId("d"), Platform.WEB, token, keys)


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        (registration(GOOD), []),
        (registration("https://evil.example/x"), ["token"]),
        (registration("https://127.0.0.1/x"), ["token"]),
        (registration("http://fcm.googleapis.com/x"), ["token"]),
        (registration(GOOD, p256dh=b"\x04" + b"\x01" * 64), ["keys.p256dh"]),
        (registration(GOOD, auth=bytes(15)), ["keys.auth"]),
        (registration("https://evil.example/x", p256dh=b""), ["token", "keys.p256dh"]),
        (Registration(AppId("demo"), UserId("u"), DeviceId("d"), Platform.ANDROID, "not a url"), []),
    ],
)
def test_each_fault_is_named(said: Registration, paths: list[str]) -> None:
    assert [fault.path for fault in CHECK(said)] == paths
