"""Client certificates in place of provider tokens: read at start, presented to Apple, watched until they end."""

from __future__ import annotations

import ssl
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

from tests.adapters.senders.bench import SystemClock, accepted, headers_of, outcome, outcomes, script, to_ios
from tests.contract.clock import StoppedClock
from tests.strict_tls import refusing
from tests.unit.adapters.noted import Noted
from waypost.channels.apns.errors import REASONS
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push import origin
from waypost.channels.push.origin import trust
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Taken
from waypost.lab import Lab
from waypost.lab.client_certificates import CLIENT_CA, issue
from waypost.lab.credentials import tls_context
from waypost.ports.sender import Health
from waypost.telemetry.events import Event

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
    return ApnsSender(
        CredentialId.of(DEMO, "apns"), settings, clock=clock or SystemClock(), telemetry=telemetry or Noted()
    )


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
    assert isinstance(got, CredentialRejected)
    assert got.code == "BadCertificateEnvironment"
    await sender.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_certificate_that_has_ended_is_denied_with_words(
    lab: Lab, apns_settings: ApnsSettings, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion
) -> None:
    """In TLS 1.2 the handshake fails; in 1.3 the client has sent a request by the time that it hears of it."""

    def trust_at_most(section: str, ca_file: str | None) -> ssl.SSLContext:
        context = trust(section, ca_file)
        context.maximum_version = version
        return context

    monkeypatch.setattr(origin, "trust", trust_at_most)
    noted = Noted()
    directory = lab.settings.directory
    settings = certified(lab, apns_settings, days=-1)
    with refusing(tls_context(directory, ["h2"], senders_ca=directory / CLIENT_CA)) as port:
        sender = sender_of(msgspec.structs.replace(settings, endpoint=f"https://127.0.0.1:{port}"), noted)
        await sender.start()
        denied = CredentialRejected("tls_certificate_expired", "the client certificate has expired")
        assert await outcomes(sender, [to_ios(lab) for _ in range(5)]) == [denied] * 5
        assert sender.health() == Health(ok=False, why="tls_certificate_expired: the client certificate has expired")
        assert [event for event, _ in noted.events].count(Event.CREDENTIAL_DENIED) == 1
        await sender.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize("reason", ["BadCertificate", "InvalidProviderToken"])
async def test_a_goaway_that_refuses_the_credential_is_a_denial(lab: Lab, apns: ApnsSender, reason: str) -> None:
    """What it gave back, and what waits, is denied; with the first answer all is well again."""
    await lab.script(script({"where": "apns", "do": {"goaway": {"last_stream": "none", "reason": reason}}}))
    for got in await outcomes(apns, [to_ios(lab) for _ in range(5)]):
        assert isinstance(got, CredentialRejected) and got.code == reason
    assert apns.health() == Health(ok=False, why=f"{reason}: {REASONS[reason][1]}")
    assert not accepted(lab, "apns")
    await lab.script(script())
    got = await outcome(apns, to_ios(lab))
    while isinstance(got, CredentialRejected):  # a connection that was refused may be the one it meets
        got = await outcome(apns, to_ios(lab))
    assert isinstance(got, Taken) and apns.health().ok


@pytest.mark.asyncio
async def test_a_goaway_for_other_reasons_denies_nothing(lab: Lab, apns: ApnsSender) -> None:
    """Shutdown: sent again over another connection."""
    goaway = {"goaway": {"last_stream": "none", "reason": "Shutdown"}}
    await lab.script(script({"where": "apns", "match": {"times": 1}, "do": goaway}))
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    assert apns.health().ok


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
