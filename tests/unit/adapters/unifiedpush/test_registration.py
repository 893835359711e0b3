"""What of a UnifiedPush registration is refused when it is registered."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.unit.adapters.push.test_encryption import AUTH_SECRET, UA_PUBLIC
from tests.unit.adapters.push.test_endpoints import APIS
from waypost.channels.push.endpoints import API_HOST
from waypost.channels.unifiedpush.registration import registration_check
from waypost.channels.unifiedpush.settings import UnifiedPushSettings
from waypost.domain.device import Platform, Registration, SubscriptionKeys, TokenUse
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, DeviceId, UserId

GOOD = "https://ntfy.example.com/upABCDEFGHIJKL?up=1"
SETTINGS = UnifiedPushSettings(allow_endpoints=("https://ntfy.example.com", "http://10.0.0.5:8080"))
KEYS = SubscriptionKeys(p256dh=UA_PUBLIC, auth=AUTH_SECRET)
DEVICE = Registration(AppId("demo"), UserId("u"), DeviceId("d"), Platform("unifiedpush"), GOOD, KEYS)


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        (DEVICE, []),
        (replace(DEVICE, token="http://10.0.0.5:8080/upX?up=1"), []),
        (replace(DEVICE, token="http://ntfy.example.com/upX"), ["token"]),
        (replace(DEVICE, token="https://evil.example/upX"), ["token"]),
        (replace(DEVICE, token="mailto:a@b.example"), ["token"]),
        (replace(DEVICE, token=f"{GOOD}&{'x' * 1000}"), ["token"]),
        (replace(DEVICE, keys=None), ["keys"]),
        (replace(DEVICE, keys=replace(KEYS, auth=b"short")), ["keys.auth"]),
        (replace(DEVICE, keys=replace(KEYS, p256dh=b"\x04" + b"\x01" * 64)), ["keys.p256dh"]),
        (replace(DEVICE, token_use=TokenUse.VOIP), ["token_use"]),
    ],
)
def test_each_fault_is_named(said: Registration, paths: list[str]) -> None:
    assert [fault.path for fault in registration_check(AppId("demo"), SETTINGS)(said)] == paths


@pytest.mark.parametrize("url", APIS)
@pytest.mark.parametrize("settings", [None, replace(SETTINGS, allow_endpoints=("*",))])
def test_the_api_of_another_provider_is_refused_and_called_so(url: str, settings: UnifiedPushSettings | None) -> None:
    (fault,) = registration_check(AppId("demo"), settings)(replace(DEVICE, token=url))
    assert (fault.path, fault.why) == ("token", API_HOST)


def test_a_device_without_keys_is_taken_where_the_app_sends_plaintext() -> None:
    check = registration_check(AppId("demo"), replace(SETTINGS, plaintext=True))
    assert check(replace(DEVICE, keys=None)) == []


def test_an_app_without_a_section_asks_only_whether_it_makes_sense() -> None:
    check = registration_check(AppId("demo"), None)
    assert check(replace(DEVICE, token="https://anywhere.example/x")) == []
    assert [fault.path for fault in check(replace(DEVICE, token="nowhere"))] == ["token"]


def test_an_entry_that_means_nothing_is_named() -> None:
    with pytest.raises(ConfigurationError) as caught:
        registration_check(AppId("demo"), replace(SETTINGS, allow_endpoints=("https://a b",)))
    assert caught.value.path == "apps.demo.unifiedpush.allow_endpoints[0]"
