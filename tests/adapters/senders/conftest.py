"""The three senders of one app over a running lab, and what they report."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.adapters.senders.bench import SystemClock
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.webpush.sender import WebPushSender
from waypost.channels.webpush.settings import WebPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.lab import Lab, LabSettings
from waypost.telemetry.sink import Silent

DEMO = AppId("demo")


@pytest.fixture
def lab_settings(tmp_path: Path, credentials: Path) -> LabSettings:
    """Free ports, strict."""
    shutil.copytree(credentials, tmp_path, dirs_exist_ok=True)
    return LabSettings(directory=tmp_path, apns_port=0, fcm_port=0, webpush_port=0, oauth_port=0, admin_port=0)


@pytest_asyncio.fixture
async def lab(lab_settings: LabSettings) -> AsyncIterator[Lab]:
    """A running lab."""
    lab = Lab(lab_settings)
    await lab.start()
    yield lab
    await lab.stop()


@pytest.fixture
def apns_settings(lab: Lab) -> ApnsSettings:
    """The lab's Apple account."""
    directory = lab.settings.directory
    return ApnsSettings(
        key_file=str(directory / "AuthKey.p8"),
        key_id=lab.settings.key_id,
        team_id=lab.settings.team_id,
        topic="com.example.demo",
        endpoint=lab.urls.apns,
        ca_file=str(directory / "ca.pem"),
    )


@pytest.fixture
def fcm_settings(lab: Lab) -> FcmSettings:
    """The lab's Firebase project, with its whole quota at once."""
    directory = lab.settings.directory
    return FcmSettings(
        service_account_file=str(directory / "fcm.json"),
        endpoint=lab.urls.fcm,
        ca_file=str(directory / "ca.pem"),
    )


@pytest.fixture
def webpush_settings(lab: Lab) -> WebPushSettings:
    """A VAPID key, and the lab as the only push service."""
    directory = lab.settings.directory
    return WebPushSettings(
        vapid_private_key_file=str(directory / "vapid.pem"),
        subject="mailto:ops@example.com",
        allow_endpoints=(lab.urls.webpush,),
        ca_file=str(directory / "ca.pem"),
    )


@pytest_asyncio.fixture
async def apns(apns_settings: ApnsSettings) -> AsyncIterator[ApnsSender]:
    """A started sender."""
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), apns_settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    yield sender
    await sender.stop(1)


@pytest_asyncio.fixture
async def fcm(fcm_settings: FcmSettings) -> AsyncIterator[FcmSender]:
    """A started sender."""
    sender = FcmSender(CredentialId.of(DEMO, "fcm"), fcm_settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    yield sender
    await sender.stop(1)


@pytest_asyncio.fixture
async def webpush(webpush_settings: WebPushSettings) -> AsyncIterator[WebPushSender]:
    """A started sender."""
    sender = WebPushSender(CredentialId.of(DEMO, "webpush"), webpush_settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    yield sender
    await sender.stop(1)
