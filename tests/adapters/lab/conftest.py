"""A running lab on free ports, and senders that talk to it as a user's own would."""

import shutil
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.adapters.lab.senders import Senders
from waypost.lab import Lab, LabSettings


@pytest.fixture
def settings(tmp_path: Path, credentials: Path) -> LabSettings:
    shutil.copytree(credentials, tmp_path, dirs_exist_ok=True)
    return LabSettings(
        directory=tmp_path, apns_port=0, fcm_port=0, webpush_port=0, oauth_port=0, admin_port=0, journal=True
    )


@pytest_asyncio.fixture
async def lab(settings: LabSettings) -> AsyncIterator[Lab]:
    lab = Lab(settings)
    await lab.start()
    yield lab
    await lab.stop()


@pytest_asyncio.fixture
async def senders(lab: Lab) -> AsyncIterator[Senders]:
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    async with httpx.AsyncClient(http2=True, verify=context, timeout=60) as client:
        yield Senders(client, lab.urls, lab.settings.directory)
