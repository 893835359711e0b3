"""What of a subscription is refused when it is registered."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.unit.adapters.push.test_encryption import AUTH_SECRET, UA_PUBLIC
from tests.unit.adapters.push.test_endpoints import APIS
from waypost.bootstrap.registry import installed
from waypost.bootstrap.senders import registration_checks
from waypost.channels.push.endpoints import API_HOST
from waypost.channels.webpush.registration import registration_check
from waypost.channels.webpush.settings import WebPushSettings
from waypost.config import AppSettings
from waypost.domain.channel import Channel
from waypost.domain.device import Platform, Registration, RegistrationCheck, SubscriptionKeys, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId

WEB = Platform("web")
GOOD = "https://fcm.googleapis.com/fcm/send/abc"
CHECK = registration_check(AppId("demo"), WebPushSettings(vapid_private_key_file="v", subject="mailto:a@b.example"))


def registration(token: str, p256dh: bytes = UA_PUBLIC, auth: bytes = AUTH_SECRET) -> Registration:
    keys = SubscriptionKeys(p256dh=p256dh, auth=auth)
    return Registration(AppId("demo"), UserId("u"), DeviceId("d"), WEB, token, keys)


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        (registration(GOOD), []),
        (registration("https://evil.example/x"), ["token"]),
        (registration("https://127.0.0.1/x"), ["token"]),
        (registration("https://web.push.apple.com/QGz"), []),
        (registration("https://api.push.apple.com/3/device/ab"), ["token"]),
        (registration("https://API.sandbox.push.apple.com/3/device/ab"), ["token"]),
        (registration("https://api-broadcast.push.apple.com/4/broadcasts/apps/a"), ["token"]),
        (registration("https://fcm.googleapis.com/v1/projects/p/messages:send"), ["token"]),
        (registration("http://fcm.googleapis.com/x"), ["token"]),
        (registration(GOOD, p256dh=b"\x04" + b"\x01" * 64), ["keys.p256dh"]),
        (registration(GOOD, auth=bytes(15)), ["keys.auth"]),
        (registration("https://evil.example/x", p256dh=b""), ["token", "keys.p256dh"]),
        (Registration(AppId("demo"), UserId("u"), DeviceId("d"), WEB, GOOD), ["keys"]),
        (replace(registration(GOOD), token_use=TokenUse.VOIP), ["token_use"]),
    ],
)
def test_each_fault_is_named(said: Registration, paths: list[str]) -> None:
    assert [fault.path for fault in CHECK(said)] == paths


@pytest.mark.parametrize("url", APIS)
@pytest.mark.parametrize("check", [CHECK, registration_check(AppId("demo"), None)])
def test_the_api_of_another_provider_is_refused_and_called_so(url: str, check: RegistrationCheck) -> None:
    (fault,) = check(registration(url))
    assert (fault.path, fault.why) == ("token", API_HOST)


def test_an_app_is_asked_by_its_own_allow_list_and_one_without_web_push_only_whether_it_makes_sense() -> None:
    settings = WebPushSettings(
        vapid_private_key_file="v", subject="mailto:a@b.example", allow_endpoints=("http://127.0.0.1:8080",)
    )
    app = AppSettings(senders={Channel("webpush"): settings})
    check = registration_checks(AppId("demo"), app, installed())[WEB]
    assert check(registration("http://127.0.0.1:8080/up")) == []
    assert [fault.path for fault in check(registration(GOOD))] == ["token"]
    without = registration_checks(AppId("demo"), AppSettings(), installed())[WEB]
    assert without(registration(GOOD)) == []
    assert [fault.path for fault in without(registration("ftp://push.example/x", auth=b""))] == ["token", "keys.auth"]
