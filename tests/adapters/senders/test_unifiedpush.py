"""UnifiedPush (AND_3) through the Web Push sender: a service that answers as ntfy does, unlike those of browsers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import http_ece
import msgspec
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.adapters.senders.bench import SystemClock, fresh, outcome
from tests.unit.adapters.deliveries import delivery
from waypost.adapters.webpush.sender import WebPushSender
from waypost.adapters.webpush.settings import WebPushSettings
from waypost.domain.device import Platform, SubscriptionKeys
from waypost.domain.ids import AppId, format_id
from waypost.domain.outcome import Refused, Taken, Unanswered
from waypost.domain.retry import EXPONENTIAL
from waypost.domain.settlement import Again, decide
from waypost.telemetry.sink import Silent

TOPIC = "/upABCDEFGHIJKL"


class Distributor:
    """As ntfy: a topic is a path, a message is answered 200 with JSON, nobody listening is 507."""

    def __init__(self) -> None:
        self.listening = True
        self.got: list[bytes] = []

    async def take(self, request: web.Request) -> web.Response:
        """POST /<topic>?up=1."""
        body = await request.read()
        if not self.listening:
            return web.json_response({"code": 50701, "http": 507, "error": "no one is listening"}, status=507)
        if request.query.get("up") != "1" or request.headers["content-encoding"] != "aes128gcm" or len(body) > 4096:
            return web.json_response({"code": 40001, "http": 400, "error": "invalid request"}, status=400)
        self.got.append(body)
        return web.json_response({"id": "hwQ2YpKdmg", "event": "message"})

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Its URL."""
        app = web.Application()
        app.router.add_post(TOPIC, self.take)
        # What the library would undo belongs to the message.
        runner = web.AppRunner(app, auto_decompress=False)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


@pytest.mark.asyncio
async def test_a_distributor_takes_what_its_app_can_read_and_is_tried_again_while_nobody_listens(
    tmp_path: Path,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "vapid.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    phone = ec.generate_private_key(ec.SECP256R1())
    p256dh = phone.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    keys = SubscriptionKeys(p256dh=p256dh, auth=bytes(range(16)))
    distributor = Distributor()
    async with distributor.open() as url:
        settings = WebPushSettings(
            vapid_private_key_file=str(tmp_path / "vapid.pem"),
            subject="mailto:ops@example.com",
            allow_endpoints=(url,),
        )
        sender = WebPushSender(AppId("demo"), settings, clock=SystemClock(), telemetry=Silent())
        await sender.start()
        one = delivery(Platform("web"), f"{url}{TOPIC}?up=1", fresh(), keys=keys)

        assert await outcome(sender, one) == Taken("")
        (body,) = distributor.got
        said = msgspec.json.decode(
            http_ece.decrypt(body, private_key=phone, auth_secret=keys.auth, version="aes128gcm")
        )
        assert said["waypost_id"] == format_id(one.notification.id)
        assert said["title"] == "Hello"

        distributor.listening = False
        nobody = await outcome(sender, one)
        assert isinstance(nobody, Unanswered)
        assert nobody.code == "http_507"
        assert isinstance(decide(nobody, one, EXPONENTIAL, SystemClock().now(), 0.0), Again)

        distributor.listening = True
        no_topic = delivery(Platform("web"), f"{url}{TOPIC}", fresh(), keys=keys)
        assert isinstance(await outcome(sender, no_topic), Refused)
        await sender.stop(1)
