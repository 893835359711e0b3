"""Ten groups of 500 messages at once from one sender: none waits for another's answer."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.adapters.senders.bench import SystemClock, fresh
from tests.adapters.senders.holding import Held, HoldingConnection
from tests.shows import shows
from tests.unit.adapters.deliveries import ANDROID_TOKEN, delivery
from waypost.channels.fcm.groups import LARGEST
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.push import patience
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.ids import AppId
from waypost.domain.outcome import Outcome, Taken
from waypost.lab.credentials import CA, SERVER, write_service_account
from waypost.telemetry.sink import Silent

CONNECTIONS, GROUPS = 50, 10
IN_FLIGHT = GROUPS * LARGEST
PATIENCE_S = 600.0


@shows("S1-117")
@pytest.mark.asyncio
async def test_a_sender_has_ten_groups_of_500_in_flight(
    credentials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway answers none of them before it has all; ten senders have the 100 groups of the plan."""
    monkeypatch.setattr(patience, "EXPECTED_S", PATIENCE_S)
    monkeypatch.setattr(patience, "ANSWER_BY_S", PATIENCE_S)
    held, tls = Held(IN_FLIGHT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(credentials / SERVER)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    server = await asyncio.get_running_loop().create_server(lambda: HoldingConnection(held), "127.0.0.1", 0, ssl=tls)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    write_service_account(tmp_path, "bench", f"{url}/token")
    sender = _sender_to(url, tmp_path, credentials)
    assert sender.capabilities.max_in_flight == IN_FLIGHT
    await sender.start()
    what, ended = fresh(), asyncio.Event()
    left, outcomes = [IN_FLIGHT + CONNECTIONS], set()

    def report(_: Delivery, outcome: Outcome) -> None:
        outcomes.add(type(outcome))
        left[0] -= 1
        if left[0] == 0:
            ended.set()

    sender.send([delivery(Platform("android"), ANDROID_TOKEN, what)] * left[0], report)
    await ended.wait()
    assert outcomes == {Taken}
    await sender.stop(1)
    server.close()


def _sender_to(url: str, account: Path, credentials: Path) -> FcmSender:
    settings = FcmSettings(
        service_account_file=str(account / "fcm.json"),
        endpoint=url,
        ca_file=str(credentials / CA),
        connections=CONNECTIONS,
    )
    return FcmSender(CredentialId.of(AppId("demo"), "fcm"), settings, clock=SystemClock(), telemetry=Silent())
