"""What of the configuration becomes which limit of a provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.shows import shows
from waypost.bootstrap.limits import bounds_of, rates_of
from waypost.bootstrap.registry import installed, load
from waypost.config import Config
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.limits import FixedWindow, Granted, Rate, TokenBucket, take
from waypost.entrypoints.limits import Bounds, LimitedRoute
from waypost.ports.plugin import SenderPlugin

FCM = {"service_account_file": "fcm.json"}
APNS = {"key_file": "key.p8", "key_id": "ABCDE12345", "team_id": "FGHIJ67890", "topic": "com.example"}


def rates(tmp_path: Path, **app: Any) -> dict[str, Rate]:
    """Of one app's credentials."""
    return {str(name): rate for name, rate in rates_of(configured(tmp_path, app)).items()}


@shows("S4-28", "S4-29")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Rate(TokenBucket(595_000, 10_000, 60))),
        ({"capacity": 100, "refill_per_s": 10}, Rate(TokenBucket(95, 10, 60))),
        ({"capacity": 100, "refill_per_s": 10, "ramp_s": 0}, Rate(TokenBucket(95, 10))),
        ({"capacity": 2, "refill_per_s": 100, "ramp_s": 0}, Rate(TokenBucket(1, 100))),
        ({"capacity": 1, "refill_per_s": 0.5, "ramp_s": 0}, Rate(TokenBucket(1, 0.5))),
        ({"unlimited": True}, Rate()),
        ({"unlimited": True, "per_device": "20/min"}, Rate(None, FixedWindow(20, 60_000))),
    ],
)
def test_what_each_credential_is_to_get(tmp_path: Path, settings: dict[str, Any], expected: Rate) -> None:
    """Requirements S4-28, S4-29: what half a second brings is kept back."""
    assert rates(tmp_path, fcm=FCM, rates={"fcm": settings})["demo/fcm"] == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, FixedWindow(20, 86_400_000)),
        ({"unlimited": True}, FixedWindow(20, 86_400_000)),
        ({"per_device": "5/d"}, FixedWindow(5, 86_400_000)),
        ({"per_device": "unlimited"}, None),
    ],
)
def test_a_number_gets_so_many_text_messages_in_a_day(
    tmp_path: Path, said: dict[str, Any], expected: FixedWindow | None
) -> None:
    """The plug-in's cap, unless an operator says another one, or that there is none."""
    (tmp_path / "token").write_text("secret")
    sms = {"account_sid": "AC" + "0" * 32, "auth_token_file": str(tmp_path / "token"), "from_number": "+15550100100"}
    assert rates(tmp_path, sms=sms, rates={"sms": said})["demo/sms"].per_device == expected


@shows("S4-27", "S4-28")
def test_a_bucket_of_simplens_is_full_at_first_and_refills_steadily(tmp_path: Path) -> None:
    """Requirements S4-27, S4-28: 100 and 10 a second are 200 in ten seconds, less the half second that is kept back."""
    given = rates_of(configured(tmp_path, {"fcm": FCM}, profile="simplens"))
    bucket = given[CredentialId(AppId("demo"), Channel("fcm"))].bucket
    assert bucket is not None
    level, sent = None, 0
    for now_ms in range(0, 10_001, 50):
        while True:
            level, answer = take(bucket, level, 1, now_ms)
            if not isinstance(answer, Granted):
                break
            sent += 1
        assert sent >= 95, "all at once at first"
    assert sent == 195


def test_what_a_plug_in_does_not_say_is_a_hundred_and_ten_a_second(tmp_path: Path) -> None:
    """Requirement S4-29; of our own channels these have a limit."""
    silent = {each.name: each.default for each in msgspec.structs.fields(SenderPlugin)}["rate"]
    assert silent == TokenBucket(100, 10.0)
    assert [str(each.channel) for each in installed() if each.rate is not None] == ["email", "fcm", "sms"]
    assert rates(tmp_path, apns=APNS) == {"demo/apns": Rate()}


@pytest.mark.parametrize(
    ("chosen", "path"),
    [
        ({"pager": {"capacity": 1}}, "apps.demo.rates.pager"),
        ({"apns": {"capacity": 1}}, "apps.demo.rates.apns"),
        ({"fcm": {"per_device": "20 a minute"}}, "apps.demo.rates.fcm.per_device"),
        ({"fcm": {"refill_per_s": 0}}, "apps.demo.rates.fcm.refill_per_s"),
    ],
)
def test_what_means_nothing_is_named(tmp_path: Path, chosen: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        rates(tmp_path, apns=APNS, fcm=FCM, rates=chosen)
    assert wrong.value.path == path


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"endpoints": {"POST /v1/notification": "1/s"}}, "limits.endpoints.POST /v1/notification"),
        ({"endpoints": {"gRPC Send": "1/s"}}, "limits.endpoints.gRPC Send"),
        ({"trusted_proxies": ["10.0.0.0/8", "proxy.example.com"]}, "limits.trusted_proxies[1]"),
        ({"counted_in": "redis"}, "redis"),
    ],
)
def test_a_route_or_a_proxy_that_is_none_is_named(tmp_path: Path, settings: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        made(tmp_path, limits=settings)
    assert wrong.value.path == path


@shows("S3-66", "S3-67")
def test_the_defaults_and_what_replaces_them(tmp_path: Path) -> None:
    """Requirements S3-66, S3-67: 100 in 15 minutes for a user, 1,000 an hour for an address."""
    bounds = made(tmp_path)
    assert (bounds.caller, bounds.user) == (FixedWindow(50_000, 1_000), FixedWindow(100, 900_000))
    assert bounds.address == FixedWindow(1_000, 3_600_000)
    settings = {"caller": "unlimited", "endpoints": {"GET /v1/notifications/{notification_id}": "10/s"}}
    bounds = made(tmp_path, limits=settings, app={"limits": {"all": "5/s", "callers": {"shop": "unlimited"}}})
    assert (bounds.caller, bounds.apps, bounds.callers) == (
        None,
        {"demo": FixedWindow(5, 1_000)},
        {("demo", "shop"): None},
    )
    assert bounds.endpoints == [LimitedRoute("GET /v1/notifications/{notification_id}", FixedWindow(10, 1_000))]


def test_all_of_them_can_be_turned_off(tmp_path: Path) -> None:
    off = made(tmp_path, limits=dict.fromkeys(("caller", "user", "address", "failures"), "unlimited"))
    assert (off.caller, off.user, off.address, off.failures) == (None, None, None, None)
    assert (off.apps, off.callers, off.endpoints) == ({"demo": None}, {}, [])


def made(tmp_path: Path, *, app: dict[str, Any] | None = None, **settings: Any) -> Bounds:
    """What the doors of a configuration let in."""
    return bounds_of(configured(tmp_path, app or {}, **settings))


def configured(tmp_path: Path, app: dict[str, Any], **settings: Any) -> Config:
    """A configuration of one app."""
    path = tmp_path / "waypost.yaml"
    path.write_text(yaml.safe_dump({"store": f"sqlite:///{tmp_path}/w.db", "apps": {"demo": app}, **settings}))
    return load(path, {})
