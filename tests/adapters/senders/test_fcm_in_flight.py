"""Ten groups of 500 messages at once from one sender: none waits for another's answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.senders.bench import SystemClock, fresh
from tests.adapters.senders.holding import ends_of, holding
from tests.shows import shows
from tests.unit.adapters.deliveries import ANDROID_TOKEN, delivery
from waypost.channels.fcm.groups import LARGEST
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.domain.ids import AppId
from waypost.domain.outcome import Taken
from waypost.lab.credentials import CA, write_service_account
from waypost.telemetry.sink import Silent

CONNECTIONS, GROUPS = 50, 10
IN_FLIGHT = GROUPS * LARGEST


@shows("S1-117")
@pytest.mark.asyncio
async def test_a_sender_has_ten_groups_of_500_in_flight(
    credentials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway answers none of them before it has all; ten senders have the 100 groups of the plan."""
    async with holding(credentials, IN_FLIGHT, ["h2", "http/1.1"], monkeypatch) as (_, port):
        url = f"https://127.0.0.1:{port}"
        write_service_account(tmp_path, "bench", f"{url}/token")
        sender = _sender_to(url, tmp_path, credentials)
        assert sender.capabilities.max_in_flight == IN_FLIGHT
        await sender.start()
        wanted = [delivery(Platform("android"), ANDROID_TOKEN, fresh())] * (IN_FLIGHT + CONNECTIONS)
        assert await ends_of(sender, wanted) == {Taken}
        await sender.stop(1)


def _sender_to(url: str, account: Path, credentials: Path) -> FcmSender:
    settings = FcmSettings(
        service_account_file=str(account / "fcm.json"),
        endpoint=url,
        ca_file=str(credentials / CA),
        connections=CONNECTIONS,
    )
    return FcmSender(CredentialId.of(AppId("demo"), "fcm"), settings, clock=SystemClock(), telemetry=Silent())
