"""A push service that nobody here wrote takes what we send: npm's web-push-testing, which decrypts it.

It speaks HTTP/1.1 without TLS. It checks the identity's key and signature, the encryption, and that there is a TTL.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.adapters.senders.bench import SystemClock, fresh, outcome, outcomes
from tests.unit.adapters.deliveries import delivery
from waypost.channels.push.vapid import read_vapid
from waypost.channels.webpush.sender import WebPushSender
from waypost.channels.webpush.settings import WebPushSettings
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform, SubscriptionKeys
from waypost.domain.ids import AppId, format_id
from waypost.domain.outcome import Gone, Refused, Taken
from waypost.telemetry.sink import Silent

HERE = Path(__file__).parent / "judge"
CACHE = Path(__file__).parents[3] / ".cache" / "judge"


def octets(text: str) -> bytes:
    """From base64url without padding."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Judge:
    """The running service and its doors."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def subscribe(self, key: str, content: Content, kind: Kind = Kind.VISIBLE) -> tuple[Delivery, str]:
        """A browser that knows this sender alone, and its name there."""
        said = await self._ask("subscribe", userVisibleOnly="true", applicationServerKey=key)
        keys = SubscriptionKeys(p256dh=octets(said["keys"]["p256dh"]), auth=octets(said["keys"]["auth"]))
        return delivery(Platform("web"), said["endpoint"], fresh(content, kind=kind), keys=keys), said["clientHash"]

    async def received(self, client: str) -> list[Any]:
        """What the browser read."""
        said = await self._ask("get-notifications", clientHash=client)
        return [msgspec.json.decode(message) for message in said["messages"]]

    async def expire(self, client: str) -> None:
        """End the subscription."""
        async with self._session.post(f"{self.url}/expire-subscription/{client}") as answer:
            assert answer.status == 200

    async def _ask(self, path: str, **body: str) -> Any:
        async with self._session.post(f"{self.url}/{path}", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return (await answer.json())["data"]


@pytest_asyncio.fixture
async def judge() -> AsyncIterator[Judge]:
    """Installed once into the cache; skipped where it cannot be, which fails in CI."""
    if not (CACHE / "node_modules" / "web-push-testing").exists():
        await _install()
    process = await asyncio.create_subprocess_exec(
        "node", str(HERE / "serve.cjs"), str(CACHE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    port = int(await process.stdout.readline())
    async with aiohttp.ClientSession() as session:
        yield Judge(f"http://127.0.0.1:{port}", session)
    process.stdin.close()
    await process.wait()


async def _install() -> None:
    npm = shutil.which("npm")
    status = 1
    if npm is not None:
        CACHE.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "package.json", CACHE)
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--omit=dev", "--silent")
        process = await asyncio.create_subprocess_exec(npm, "install", *options, cwd=CACHE)
        status = await process.wait()
    if status:
        assert os.environ.get("CI") != "true", "web-push-testing cannot be installed"
        pytest.skip("web-push-testing cannot be installed: no npm, or no way to its registry")


@pytest_asyncio.fixture
async def settings(judge: Judge, tmp_path: Path) -> WebPushSettings:
    """A new identity, and the judge as the only push service."""
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "vapid.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return WebPushSettings(
        vapid_private_key_file=str(tmp_path / "vapid.pem"),
        subject="mailto:ops@example.com",
        allow_endpoints=(judge.url,),
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("reused", [False, True], ids=["a key for each", "a key for an hour"])
async def test_everything_we_send_is_taken_and_read(judge: Judge, settings: WebPushSettings, *, reused: bool) -> None:
    settings = msgspec.structs.replace(settings, reuse_sender_key=reused, declarative=reused)
    sender = await started(settings)
    contents = [
        Content(title="Hello", body="World"),
        Content(title="Grüße 👩‍👩‍👧", body="x" * 3_700, link="https://example.com/"),
        Content(title="T", data={"order": 7}, collapse_key="order-7"),
    ]
    subscribed = [await judge.subscribe(key_of(settings), content) for content in contents]
    subscribed.append(await judge.subscribe(key_of(settings), Content(data={"sync": 1}), Kind.SILENT))
    for got in await outcomes(sender, [one for one, _ in subscribed]):
        assert isinstance(got, Taken)
    for one, client in subscribed:
        (read,) = await judge.received(client)
        assert read["waypost_id"] == format_id(one.id)
    await sender.stop(1)


@pytest.mark.asyncio
async def test_what_it_refuses_we_read_as_it_means(judge: Judge, settings: WebPushSettings) -> None:
    sender = await started(settings)
    one, client = await judge.subscribe(key_of(settings), Content(title="T"))
    await judge.expire(client)
    assert isinstance(await outcome(sender, one), Gone)
    stranger = (
        read_vapid("apps.demo.webpush", settings.vapid_private_key_file, settings.subject).public_key[:-4] + "AAAA"
    )
    with pytest.raises(AssertionError):
        await judge.subscribe(stranger, Content(title="T"))
    unknown = delivery(Platform("web"), f"{judge.url}/notify/nobody", fresh(), keys=one.device.keys)
    assert isinstance(await outcome(sender, unknown), Refused)
    await sender.stop(1)


async def started(settings: WebPushSettings) -> WebPushSender:
    """A sender of these settings."""
    sender = WebPushSender(CredentialId.of(AppId("demo"), "webpush"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    return sender


def key_of(settings: WebPushSettings) -> str:
    """What a page subscribes with."""
    return read_vapid("apps.demo.webpush", settings.vapid_private_key_file, settings.subject).public_key
