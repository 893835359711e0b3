"""Many apps in one process: what senders have in common is made once."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import yaml

from tests.adapters.senders.bench import SystemClock, outcomes, to_android, to_ios
from tests.adapters.senders.conftest import DEMO
from tests.journeys.harness import until
from waypost.bootstrap.registry import load
from waypost.bootstrap.senders import AHEAD_LIMIT, connect_ahead, try_credentials
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.credential import CredentialId
from waypost.domain.outcome import Taken
from waypost.lab import Lab
from waypost.lab.credentials import write_missing, write_service_account
from waypost.telemetry.sink import Silent

APPS = 20


@pytest.mark.asyncio
async def test_the_senders_of_many_apps_share_two_tls_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each protocol that is spoken; each would take 0.05 s of CPU, and keep the authorities in memory."""
    write_missing(tmp_path, "demo")
    write_service_account(tmp_path, "demo", "https://127.0.0.1:1/token")
    nobody, ca = "https://127.0.0.1:1", {"ca_file": "ca.pem"}
    app = {
        "apns": {
            "key_file": "AuthKey.p8",
            "key_id": "A" * 10,
            "team_id": "B" * 10,
            "topic": "t",
            "endpoint": nobody,
            **ca,
        },
        "fcm": {"service_account_file": "fcm.json", "endpoint": nobody, **ca},
        "webpush": {"vapid_private_key_file": "vapid.pem", "subject": "mailto:ops@example.com", **ca},
        "unifiedpush": {"allow_endpoints": [nobody], **ca},
    }
    file = tmp_path / "waypost.yaml"
    file.write_text(yaml.safe_dump({"apps": {f"app{n}": app for n in range(APPS)}}))
    make, made = ssl.create_default_context, list[ssl.SSLContext]()

    def counted(cafile: str | None = None) -> ssl.SSLContext:
        made.append(make(cafile=cafile))
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    tried = await try_credentials(load(file, {}))
    assert len(tried) == 4 * APPS and not any(tried.values())
    assert len(made) == 2


@pytest.mark.asyncio
async def test_senders_among_many_connect_when_they_have_something_to_send(
    lab: Lab, apns_settings: ApnsSettings, fcm_settings: FcmSettings
) -> None:
    """Those that connect ahead are connected by the time that these have opened nothing; what they send arrives."""
    waiting: list[ApnsSender | FcmSender] = [_apns(apns_settings, ahead=False), _fcm(fcm_settings, ahead=False)]
    eager: list[ApnsSender | FcmSender] = [_apns(apns_settings, ahead=True), _fcm(fcm_settings, ahead=True)]
    for sender in (*waiting, *eager):
        await sender.start()

    async def connected() -> bool:
        return all(_connections(sender) for sender in eager) and len(lab.oauth._expiries) > 0

    await until(connected, "connections ahead")
    assert [_connections(sender) for sender in waiting] == [0, 0]
    assert len(lab.oauth._expiries) == 1
    for sender, one in zip(waiting, (to_ios(lab), to_android(lab)), strict=True):
        assert [type(outcome) for outcome in await outcomes(sender, [one])] == [Taken]
    for sender in (*waiting, *eager):
        await sender.stop(1.0)


def _apns(settings: ApnsSettings, *, ahead: bool) -> ApnsSender:
    credential = CredentialId.of(DEMO, "apns")
    return ApnsSender(credential, settings, clock=SystemClock(), telemetry=Silent(), ahead=ahead)


def _fcm(settings: FcmSettings, *, ahead: bool) -> FcmSender:
    return FcmSender(CredentialId.of(DEMO, "fcm"), settings, clock=SystemClock(), telemetry=Silent(), ahead=ahead)


def _connections(sender: ApnsSender | FcmSender) -> int:
    """How many it has open, or is opening."""
    return sender._watch._connections()


def test_few_connect_ahead_and_many_do_not(tmp_path: Path) -> None:
    """It is credentials that count, not apps."""
    write_missing(tmp_path, "demo")
    section = {"vapid_private_key_file": "vapid.pem", "subject": "mailto:ops@example.com"}
    for count, ahead in ((1, True), (AHEAD_LIMIT, True), (AHEAD_LIMIT + 1, False)):
        file = tmp_path / "waypost.yaml"
        file.write_text(yaml.safe_dump({"apps": {f"app{n}": {"webpush": section} for n in range(count)}}))
        assert connect_ahead(load(file, {})) is ahead
