"""As many requests at once as Apple allows, on as many connections as there may be: none waits for another's answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.senders.bench import SystemClock, fresh
from tests.adapters.senders.holding import ends_of, holding
from tests.shows import shows
from tests.unit.adapters.deliveries import IOS_TOKEN, delivery
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.domain.ids import AppId
from waypost.domain.outcome import Taken
from waypost.lab import LabSettings
from waypost.lab.credentials import APNS_KEY, CA
from waypost.telemetry.sink import Silent

CONNECTIONS, STREAMS = 25, 1_000
IN_FLIGHT = CONNECTIONS * STREAMS


@shows("S1-87", "S1-116")
@pytest.mark.asyncio
async def test_25_connections_carry_25_000_requests_at_once(credentials: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway answers none of them before it has all; time is not what is tried."""
    async with holding(credentials, IN_FLIGHT, ["h2"], monkeypatch) as (held, port):
        sender = sender_to(port, credentials)
        assert sender.capabilities.max_in_flight == IN_FLIGHT
        await sender.start()
        wanted = [delivery(Platform("ios"), IOS_TOKEN, fresh())] * (IN_FLIGHT + CONNECTIONS)
        assert await ends_of(sender, wanted) == {Taken}
        assert len({connection for connection, *_ in held.requests}) == CONNECTIONS
        await sender.stop(1)


def sender_to(port: int, credentials: Path) -> ApnsSender:
    """A sender with the connections that there are unless said otherwise."""
    of = LabSettings(directory=credentials)
    settings = ApnsSettings(
        key_file=str(credentials / APNS_KEY),
        key_id=of.key_id,
        team_id=of.team_id,
        topic="com.example.demo",
        endpoint=f"https://127.0.0.1:{port}",
        ca_file=str(credentials / CA),
    )
    assert settings.connections == CONNECTIONS
    credential = CredentialId.of(AppId("demo"), "apns")
    return ApnsSender(credential, settings, clock=SystemClock(), telemetry=Silent())
