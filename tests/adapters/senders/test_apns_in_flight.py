"""As many requests at once as Apple allows, on as many connections as there may be: none waits for another's answer."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.adapters.senders.bench import SystemClock, fresh
from tests.adapters.senders.holding import Held, HoldingConnection
from tests.shows import shows
from tests.unit.adapters.deliveries import IOS_TOKEN, delivery
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push import patience
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.ids import AppId
from waypost.domain.outcome import Outcome, Taken
from waypost.lab import LabSettings
from waypost.lab.credentials import APNS_KEY, CA, SERVER
from waypost.telemetry.sink import Silent

CONNECTIONS, STREAMS = 25, 1_000
IN_FLIGHT = CONNECTIONS * STREAMS
PATIENCE_S = 600.0


@shows("S1-87", "S1-116")
@pytest.mark.asyncio
async def test_25_connections_carry_25_000_requests_at_once(credentials: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway answers none of them before it has all; time is not what is tried."""
    monkeypatch.setattr(patience, "EXPECTED_S", PATIENCE_S)
    monkeypatch.setattr(patience, "ANSWER_BY_S", PATIENCE_S)
    held, tls = Held(IN_FLIGHT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(credentials / SERVER)
    tls.set_alpn_protocols(["h2"])
    server = await asyncio.get_running_loop().create_server(lambda: HoldingConnection(held), "127.0.0.1", 0, ssl=tls)
    sender = sender_to(server.sockets[0].getsockname()[1], credentials)
    assert sender.capabilities.max_in_flight == IN_FLIGHT
    await sender.start()
    what, ended = fresh(), asyncio.Event()
    left, outcomes = [IN_FLIGHT + CONNECTIONS], set()

    def report(_: Delivery, outcome: Outcome) -> None:
        outcomes.add(type(outcome))
        left[0] -= 1
        if left[0] == 0:
            ended.set()

    sender.send([delivery(Platform("ios"), IOS_TOKEN, what)] * left[0], report)
    await ended.wait()
    assert outcomes == {Taken}
    assert len({connection for connection, *_ in held.requests}) == CONNECTIONS
    await sender.stop(1)
    server.close()


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
