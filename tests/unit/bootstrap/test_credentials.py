"""Several credentials of one channel in an app: each with a section, a sender, limits, breakers and conditions."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from tests.shows import shows
from waypost.bootstrap.credentials import Sections
from waypost.bootstrap.limits import rates_of
from waypost.bootstrap.registry import load
from waypost.bootstrap.senders import sections_of, senders_of
from waypost.config import Config
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.limits import TokenBucket
from waypost.domain.time import from_datetime
from waypost.ports.plugin import Means
from waypost.runtime.clock import SystemClock
from waypost.runtime.gates import Gates
from waypost.telemetry import Silent

DEMO, FCM = AppId("demo"), Channel("fcm")
DEFAULT, SHOP = CredentialId(DEMO, FCM), CredentialId(DEMO, FCM, "shop")
TWO = """
apps:
  demo:
    fcm: {service_account_file: one.json}
    fcm/shop: {service_account_file: two.json, endpoint: "https://127.0.0.1:9"}
    expires_on: {fcm/shop: 2031-03-01}
    rates: {fcm/shop: {capacity: 200, refill_per_s: 100, ramp_s: 0}}
"""


def read(folder: Path, text: str) -> Config:
    """The configuration that a file says."""
    (folder / "waypost.yaml").write_text(text)
    return load(folder / "waypost.yaml", {})


@pytest.mark.parametrize("credential", [DEFAULT, SHOP])
def test_a_credential_is_spelled_and_read_in_one_place(credential: CredentialId) -> None:
    """The text of one says all of it: what is read from its slot is the same credential."""
    assert str(credential) == f"demo/{credential.slot}"
    assert CredentialId.of(DEMO, credential.slot) == credential
    assert {credential: 1}[CredentialId.of(DEMO, credential.slot)] == 1


@shows("S1-129")
def test_a_rehearsal_is_known_by_its_credential(tmp_path: Path) -> None:
    config = read(tmp_path, TWO + "    rehearsed_on: {fcm/shop: 2027-01-31}\n")
    sections = Sections(config, None, lambda: config)
    assert sections.rehearsals() == {"demo/fcm/shop": from_datetime(dt.datetime(2027, 1, 31, tzinfo=dt.UTC))}


def test_a_second_credential_has_a_section_a_sender_and_limits_of_its_own(tmp_path: Path) -> None:
    """It stands beside the default, which is as it was."""
    config = read(tmp_path, TWO)
    files = {name: section.service_account_file for name, (_, section) in sections_of(config).items()}
    assert files == {DEFAULT: str(tmp_path / "one.json"), SHOP: str(tmp_path / "two.json")}
    senders = senders_of(config, Means(SystemClock(), Silent()))
    assert {name: sender.credential for name, sender in senders.items()} == {DEFAULT: DEFAULT, SHOP: SHOP}
    rates = rates_of(config)
    assert rates[SHOP].bucket == TokenBucket(150, 100)
    assert rates[DEFAULT].bucket != rates[SHOP].bucket


def test_each_credential_has_breakers_and_conditions_of_its_own(tmp_path: Path) -> None:
    """What one of them is refused stops nothing of the other."""
    senders = senders_of(read(tmp_path, TWO), Means(SystemClock(), Silent()))
    gates = Gates({name: each.capabilities for name, each in senders.items()}, {}, BreakerRules(), Silent())
    assert set(gates.in_flight()) == {DEFAULT, SHOP}
    conditions = set(gates.conditions())
    assert {"breaker:demo/fcm", "breaker:demo/fcm/shop"} <= conditions


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("apps: {demo: {fcm/shop: {service_account_file: a}}}", "apps.demo.fcm"),
        ("apps: {demo: {fcm: {service_account_file: a}, fcm/Shop: {service_account_file: a}}}", "apps.demo.fcm/Shop"),
        ("apps: {demo: {fcm: {service_account_file: a}, fcm/: {service_account_file: a}}}", "apps.demo.fcm/"),
        ("apps: {demo: {pager/a: {}}}", "apps.demo.pager/a"),
        ("apps: {demo: {rates/a: {}}}", "apps.demo.rates/a"),
        ("apps: {demo: {fcm: {service_account_file: a}, fcm/shop: {}}}", "apps.demo.fcm/shop.service_account_file"),
        ("apps: {demo: {expires_on: {fcm/shop: 2031-03-01}}}", "apps.demo.expires_on.fcm/shop"),
        ("apps: {demo: {rates: {pager/a: {unlimited: true}}}}", "apps.demo.rates.pager/a"),
    ],
)
def test_a_section_that_is_no_credential_is_named(tmp_path: Path, text: str, path: str) -> None:
    """A second credential needs the default beside it, a name in lower case and the keys of its channel."""
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, text)
    assert refused.value.path == path
