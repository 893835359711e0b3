"""Senders behind a proxy: whatever goes to Apple and to Google, access tokens too, goes through it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.adapters.senders.bench import SystemClock, outcome, to_all, to_android, to_ios
from tests.shows import shows
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.webhook.sender import WebhookSender
from waypost.channels.webhook.settings import CHANNEL, WebhookSettings
from waypost.domain.audience import Audience
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import Refused, Taken, Unreachable
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
        try:
            far_reader, far_writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            writer.close()
            return
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


def _webhooks(lab: Lab, proxy: str, *allowed: str) -> WebhookSender:
    directory = lab.settings.directory
    settings = WebhookSettings(
        secret_file=str(directory / "webhook.secret"),
        ca_file=str(directory / "ca.pem"),
        allow_endpoints=allowed,
        proxy=proxy,
    )
    return WebhookSender(CredentialId.of(DEMO, "webhook"), settings, clock=SystemClock(), telemetry=Silent())


def _to(url: str) -> Delivery:
    return to_all(Audience(CHANNEL, "url", url))


@shows("S4-49")
@pytest.mark.asyncio
async def test_a_webhooks_proxy_is_asked_for_the_address_that_was_checked(lab: Lab) -> None:
    """Over HTTP/2 and HTTP/1.1; the certificate is that of the name, the next address is tried where one is away."""
    urls = [lab.urls.further["webhook"], lab.urls.webpush_http1]
    named = [url.replace("127.0.0.1", "localhost") for url in urls]
    async with ConnectProxy().running() as proxy:
        sender = _webhooks(lab, proxy.url, *named)
        await sender.start()
        assert isinstance(await outcome(sender, _to(f"{named[0]}/hooks/x")), Taken)
        answered = await outcome(sender, _to(f"{named[1]}/hooks/x"))
        assert isinstance(answered, Refused)  # it is no receiver of webhooks
        assert answered.code.startswith("http_4")
        await sender.stop(1)
    hosts = {target.rpartition(":")[0] for target in proxy.tunnels}
    assert "127.0.0.1" in hosts
    assert hosts <= {"127.0.0.1", "[::1]"}
    assert {target.rpartition(":")[2] for target in proxy.tunnels} == {url.rpartition(":")[2] for url in urls}


@pytest.mark.asyncio
async def test_a_webhooks_proxy_leads_to_no_address_that_may_not_be_dialed(lab: Lab) -> None:
    async with ConnectProxy().running() as proxy:
        sender = _webhooks(lab, proxy.url, "*")
        await sender.start()
        got = await outcome(sender, _to("https://localhost/x"))
        assert isinstance(got, Unreachable)
        assert "may not be dialed" in got.why
        assert isinstance(await outcome(sender, _to("https://127.0.0.1/x")), Refused)
        await sender.stop(1)
    assert proxy.tunnels == []


@pytest.mark.asyncio
async def test_nothing_goes_through_a_proxy_in_clear_text(lab: Lab) -> None:
    sender = _webhooks(lab, "http://127.0.0.1:9", "https://a.example", "http://b.example")
    with pytest.raises(ConfigurationError) as caught:
        await sender.start()
    assert caught.value.path == "apps.demo.webhook.allow_endpoints[1]"


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
