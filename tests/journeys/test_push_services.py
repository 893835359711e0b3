"""Push services fail on their own: one that nobody answers for keeps its own subscriptions waiting, and no others."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from pathlib import Path

import pytest

from tests.hurry import HURRIED, PROBED_SOON
from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows

MANY = 25
"""More than a breaker lets fail in a row."""


class Doorway:
    """A second address of the lab's push service; while it is shut, whoever comes waits for an answer in vain."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_open = False
        self._visitors: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> int:
        """The port on which it stands."""
        self._server = await asyncio.start_server(self._let_in, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def open(self) -> None:
        """Who waits is sent away; who comes again is let through."""
        self._is_open = True
        self._send_away()

    async def stop(self) -> None:
        """Nobody comes through any more."""
        self._server.close()
        self._send_away()
        await asyncio.gather(*self._tasks)

    def _send_away(self) -> None:
        for visitor in self._visitors:
            visitor.transport.abort()

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._visitors.append(writer)
        if self._is_open:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._visitors.append(inner_writer)
            pairs = ((reader, inner_writer), (inner_reader, writer))
            self._tasks += [asyncio.create_task(_copy(*pair)) for pair in pairs]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.transport.abort()


@shows("S1-66")
@pytest.mark.asyncio
async def test_a_push_service_that_is_silent_stops_its_own_subscriptions_alone(tmp_path: Path) -> None:
    """Its messages wait under its own breaker while others are sent at once; when it answers again they arrive."""
    async with running(tmp_path, start=False, sitecustomize=HURRIED + PROBED_SOON) as service:
        lab_url = service.lab.urls["webpush"]
        door = Doorway(int(lab_url.rpartition(":")[2]))
        silent_url = f"https://127.0.0.1:{await door.start()}"
        try:
            await _allow(service, lab_url, silent_url)
            await _register(service, lab_url, silent_url)
            silent = [await _tell(service, "silent", n) for n in range(MANY)]
            await until(lambda: _opened(service), "the breaker of the silent push service")
            waiting = await _tell(service, "silent", MANY)
            well = await _tell(service, "well", 0)
            await until(lambda: _is(service, well, "sent"), "what the other push service takes")
            (receipt,) = (await service.ask("GET", f"/v1/notifications/{waiting}"))[1]["receipts"]
            assert receipt["status"] == "pending"
            assert receipt["parked"].startswith("breaker:demo/webpush#")
            assert {each.get("scope") for each in service.log("breaker.opened")} == {silent_url}
            await door.open()
            for each in (waiting, *silent):
                await until(partial(_is, service, each, "sent"), "what waited")
        finally:
            await door.stop()


async def _allow(service: Service, *endpoints: str) -> None:
    """Start with these push services allowed."""
    made = service.lab.directory
    webpush = {"vapid_private_key_file": f"{made}/vapid.pem", "subject": "mailto:ops@example.com"}
    webpush |= {"ca_file": f"{made}/ca.pem"}
    service.configure(workers=1, app={"webpush": webpush | {"allow_endpoints": list(endpoints)}})
    await service.start()


async def _register(service: Service, lab_url: str, silent_url: str) -> None:
    """A user at each of the two."""
    found = await service.lab.ask("POST", "/subscriptions", {"count": 2})
    for user, url, one in zip(("well", "silent"), (lab_url, silent_url), found["subscriptions"], strict=True):
        device = {"platform": "web", "token": one["endpoint"].replace(lab_url, url), "keys": one["keys"]}
        status, answer = await service.ask("PUT", f"/v1/devices/{user}/browser", device)
        assert status == 201, answer


async def _tell(service: Service, user: str, n: int) -> str:
    status, answer = await service.ask("POST", "/v1/notifications", {"user_id": user, "title": f"News {n}"})
    assert status == 202, answer
    return str(answer["id"])


async def _opened(service: Service) -> list[Json]:
    return service.log("breaker.opened")


async def _is(service: Service, notification_id: str, status: str) -> bool:
    code, detail = await service.ask("GET", f"/v1/notifications/{notification_id}")
    assert code == 200, detail
    return bool(detail["notification"]["status"] == status)
