"""Client certificates in place of provider tokens: read at start, presented to Apple, watched until they end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.adapters.senders.bench import SystemClock, accepted, headers_of, outcome, outcomes, to_ios
from tests.contract.clock import StoppedClock
from tests.unit.adapters.noted import Noted
from waypost.adapters.apns.sender import ApnsSender
from waypost.adapters.apns.settings import ApnsSettings
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import Denied, Taken
from waypost.lab import Lab
from waypost.lab.client_certificates import issue

DEMO = AppId("demo")
SECTION = "apps.demo.apns"


def certified(lab: Lab, settings: ApnsSettings, *, days: float = 365, environment: str = "production") -> ApnsSettings:
    """*settings* with a certificate in place of the key."""
    directory = lab.settings.directory
    _, pem = issue(directory, ("com.example.demo",), (environment,), days=days)
    file = directory / "push.pem"
    file.write_bytes(pem)
    return msgspec.structs.replace(settings, certificate_file=str(file), key_file=None, key_id=None, team_id=None)


def sender_of(settings: ApnsSettings, telemetry: Noted | None = None, clock: StoppedClock | None = None) -> ApnsSender:
    return ApnsSender(DEMO, settings, clock=clock or SystemClock(), telemetry=telemetry or Noted())


@pytest.mark.asyncio
async def test_a_certificate_identifies_the_connection_and_no_token_is_sent(
    lab: Lab, apns_settings: ApnsSettings
) -> None:
    noted = Noted()
    sender = sender_of(certified(lab, apns_settings), noted)
    await sender.start()
    got = await outcomes(sender, [to_ios(lab) for _ in range(50)])
    assert all(isinstance(each, Taken) for each in got)
    assert all("authorization" not in headers_of(lab, record) for record in accepted(lab, "apns"))
    assert sender.health().ok
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_certificate_of_the_other_environment_is_denied(lab: Lab, apns_settings: ApnsSettings) -> None:
    sender = sender_of(certified(lab, apns_settings, environment="sandbox"))
    await sender.start()
    got = await outcome(sender, to_ios(lab))
    assert isinstance(got, Denied)
    assert got.code == "BadCertificateEnvironment"
    await sender.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"key_file": "k"}, "key_file"),
        ({"key_id": "i"}, "key_id"),
        ({"team_id": "t"}, "team_id"),
        ({"certificate_file": None}, "key_file"),
        ({"certificate_file": None, "key_file": "k", "key_id": "i"}, "team_id"),
        ({"certificate_file": "/nowhere/push.pem"}, "certificate_file"),
    ],
)
async def test_exactly_one_credential_is_given(
    lab: Lab, apns_settings: ApnsSettings, fields: dict[str, str | None], named: str
) -> None:
    sender = sender_of(msgspec.structs.replace(certified(lab, apns_settings), **fields))
    with pytest.raises(ConfigurationError) as caught:
        await sender.start()
    assert caught.value.path == f"{SECTION}.{named}"
    await sender.stop(1)


def _without_key(pem: bytes) -> bytes:
    return pem[pem.index(b"-----BEGIN CERTIFICATE") :]


def _rewrite(file: Path, spoil: Callable[[bytes], bytes]) -> None:
    file.write_bytes(spoil(file.read_bytes()))


def _encrypted(pem: bytes) -> bytes:
    key = load_pem_private_key(pem, None)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    return sealed + _without_key(pem)


@pytest.mark.asyncio
@pytest.mark.parametrize("spoil", [_without_key, _encrypted, lambda pem: pem[:-200], lambda _: b"\x30\x82\x01\x00"])
async def test_a_file_that_is_no_certificate_with_its_key_stops_the_start(
    lab: Lab, apns_settings: ApnsSettings, spoil: Callable[[bytes], bytes]
) -> None:
    settings = certified(lab, apns_settings)
    assert settings.certificate_file is not None
    _rewrite(Path(settings.certificate_file), spoil)
    sender = sender_of(settings)
    with pytest.raises(ConfigurationError) as caught:
        await sender.start()
    assert caught.value.path == f"{SECTION}.certificate_file"
    assert "PEM" in str(caught.value)
    await sender.stop(1)
