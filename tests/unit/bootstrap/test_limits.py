"""What of the configuration becomes which limit of a provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from waypost.bootstrap.limits import rates_of
from waypost.bootstrap.registry import installed, load
from waypost.domain.errors import ConfigurationError
from waypost.domain.limits import FixedWindow, Rate, TokenBucket
from waypost.ports.plugin import SenderPlugin

FCM = {"service_account_file": "fcm.json"}
APNS = {"key_file": "key.p8", "key_id": "ABCDE12345", "team_id": "FGHIJ67890", "topic": "com.example"}


def rates(tmp_path: Path, **app: Any) -> dict[str, Rate]:
    """Of one app's credentials."""
    path = tmp_path / "waypost.yaml"
    path.write_text(yaml.safe_dump({"store": f"sqlite:///{tmp_path}/w.db", "apps": {"demo": app}}))
    return {str(name): rate for name, rate in rates_of(load(path, {}))["demo"].items()}  # type: ignore[index] # a text


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


def test_what_a_plug_in_does_not_say_is_a_hundred_and_ten_a_second(tmp_path: Path) -> None:
    """Requirement S4-29; of our own channels FCM alone has a limit."""
    silent = {each.name: each.default for each in msgspec.structs.fields(SenderPlugin)}["rate"]
    assert silent == TokenBucket(100, 10.0)
    assert [str(each.channel) for each in installed() if each.rate is not None] == ["fcm"]
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
