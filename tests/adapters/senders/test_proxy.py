"""Senders behind a proxy: whatever goes to Apple and to Google, access tokens too, goes through it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.adapters.senders.bench import SystemClock, outcome, to_android, to_ios
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import Taken, Unreachable
from waypost.lab import Lab
from waypost.telemetry.sink import Silent

DEMO = AppId("demo")
LOGIN = "Basic bWU6c2VjcmV0"
"""Of ``me:secret``."""


class ConnectProxy:
    """A proxy that opens tunnels to whoever has the login, and notes where to."""

    def __init__(self) -> None:
        self.tunnels: list[str] = []
        self.url = ""
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ConnectProxy]:
        """Listen until the block ends."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://me:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield self
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split(" ", 2)
        if method != "CONNECT" or f"proxy-authorization: {LOGIN}".lower() not in head.lower():
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            writer.close()
            return
        self.tunnels.append(target)
        host, _, port = target.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pairs = ((reader, far_writer), (far_reader, writer))
        self._tasks += [asyncio.create_task(_copy(*pair)) for pair in pairs]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.close()


def _authority(url: str) -> str:
    return url.removeprefix("https://").partition("/")[0]


@pytest.mark.asyncio
async def test_everything_goes_through_the_proxy(
    lab: Lab, apns_settings: ApnsSettings, fcm_settings: FcmSettings
) -> None:
    async with ConnectProxy().running() as proxy:
        through_apns = msgspec.structs.replace(apns_settings, proxy=proxy.url)
        apns = ApnsSender(CredentialId.of(DEMO, "apns"), through_apns, clock=SystemClock(), telemetry=Silent())
        fcm = FcmSender(
            CredentialId.of(DEMO, "fcm"),
            msgspec.structs.replace(fcm_settings, proxy=proxy.url),
            clock=SystemClock(),
            telemetry=Silent(),
        )
        for sender, one in ((apns, to_ios(lab)), (fcm, to_android(lab))):
            await sender.start()
            assert isinstance(await outcome(sender, one), Taken)
            await sender.stop(1)
    wanted = {_authority(url) for url in (lab.urls.apns, lab.urls.fcm, lab.urls.oauth)}
    assert {target.replace("localhost", "127.0.0.1") for target in proxy.tunnels} == wanted


@pytest.mark.asyncio
async def test_a_proxy_that_refuses_is_no_provider_that_refuses(lab: Lab, apns_settings: ApnsSettings) -> None:
    """Nothing was sent, so it is tried again; the login is in no reason."""
    async with ConnectProxy().running() as proxy:
        settings = msgspec.structs.replace(apns_settings, proxy=proxy.url.replace("secret", "wrong"))
        sender = ApnsSender(CredentialId.of(DEMO, "apns"), settings, clock=SystemClock(), telemetry=Silent())
        await sender.start()
        got = await outcome(sender, to_ios(lab))
        await sender.stop(1)
    assert isinstance(got, Unreachable)
    assert "407" in got.why
    assert "wrong" not in got.why


@pytest.mark.asyncio
async def test_what_is_no_proxy_names_the_setting(lab: Lab, apns_settings: ApnsSettings) -> None:
    settings = msgspec.structs.replace(apns_settings, proxy="socks5://127.0.0.1:1080")
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), settings, clock=SystemClock(), telemetry=Silent())
    with pytest.raises(ConfigurationError) as caught:
        await sender.start()
    assert caught.value.path == "apps.demo.apns.proxy"
