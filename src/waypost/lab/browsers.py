"""Real browsers: Mozilla's protocol between Firefox and its push service, JSON frames in a web socket.

Source: Mozilla, autopush, "HTTP and WebSocket protocol". What is not acknowledged is sent again after the next hello.
"""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from waypost.lab.exchange import Request
from waypost.lab.jose import from_base64url, to_base64url
from waypost.lab.subscriptions import Subscription
from waypost.lab.webpush import WebPushGateway, kept_s

WAITING_LIMIT = 1_000
"""The most messages that wait for one browser; the oldest go first."""
ACKNOWLEDGED_LIMIT = 1_000
_SUBPROTOCOL = "push-notification"
_OK, _CONFLICT = 200, 409
_NOT_SPOKEN = 1008
"""The close code for who does not keep to the protocol (RFC 6455, section 7.4.1)."""


class _Frame(msgspec.Struct, frozen=True, tag_field="messageType", tag=str.lower):
    pass


class Hello(_Frame, frozen=True):
    """The first frame of a connection."""

    uaid: str | None = None


class Register(_Frame, frozen=True):
    """An order to make a subscription, for the sender with this key alone where one is given."""

    channel: str = msgspec.field(name="channelID")
    key: str | None = None


class Unregister(_Frame, frozen=True):
    """An order to end one."""

    channel: str = msgspec.field(name="channelID")


class Update(msgspec.Struct, frozen=True):
    """One message that a browser has: code 100 is handed over, 101 not decrypted, 102 not handed over."""

    version: str
    code: int = 100


class Ack(_Frame, frozen=True):
    """The messages that a browser has, whatever became of them."""

    updates: tuple[Update, ...] = ()


class Nack(_Frame, frozen=True):
    """A message whose handling failed after it was acknowledged."""

    version: str = ""
    code: int = 0


class BroadcastSubscribe(_Frame, frozen=True, tag="broadcast_subscribe"):
    """A wish to hear of Mozilla's own settings: there are none here."""


_frame = msgspec.json.Decoder(Hello | Register | Unregister | Ack | Nack | BroadcastSubscribe).decode


class _Message(msgspec.Struct, frozen=True):
    """A message that waits for its browser."""

    frame: bytes
    channel: str
    topic: str | None
    until: float


class _Browser:
    """One browser, there or not."""

    def __init__(self, uaid: str) -> None:
        self.uaid = uaid
        self.waiting: dict[str, _Message] = {}
        self.acknowledged: deque[Update] = deque(maxlen=ACKNOWLEDGED_LIMIT)
        self.frames: asyncio.Queue[bytes] | None = None
        """What goes to it; None while it is not connected."""
        self.socket: web.WebSocketResponse | None = None

    def say(self, frame: bytes) -> None:
        """Send *frame* where it is connected."""
        if self.frames is not None:
            self.frames.put_nowait(frame)


class Browsers:
    """The port that browsers connect to, as `dom.push.serverURL`."""

    def __init__(self, webpush: WebPushGateway, clock: Callable[[], float]) -> None:
        self._webpush, self._clock = webpush, clock
        webpush.hand_over = self._hand_over
        self._known: dict[str, _Browser] = {
            uaid: _Browser(uaid) for uaid in {each.browser for each in webpush.subscriptions if each.browser}
        }
        app = web.Application()
        app.add_routes([web.get("/", self._connect)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def open(self, host: str, port: int) -> str:
        """Listen, and say where."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        real_port = self._runner.addresses[0][1]
        return f"ws://{f'[{host}]' if ':' in host else host}:{real_port}/"

    async def close(self) -> None:
        """Stop listening, and break what stands."""
        for browser in self._known.values():
            if browser.socket is not None:
                await browser.socket.close()
        await self._runner.cleanup()

    def shown(self) -> list[dict[str, Any]]:
        """List the browsers, as the admin API shows them."""
        tokens: dict[str, list[str]] = {}
        for each in self._webpush.subscriptions:
            if each.browser and each.id not in self._webpush.deaths:
                tokens.setdefault(each.browser, []).append(each.id)
        return [
            {
                "uaid": browser.uaid,
                "connected": browser.frames is not None,
                "subscriptions": tokens.get(browser.uaid, []),
                "waiting": len(browser.waiting),
                "acknowledged": [each.code for each in browser.acknowledged],
            }
            for browser in self._known.values()
        ]

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(_SUBPROTOCOL,))
        await socket.prepare(request)
        browser: _Browser | None = None
        frames: asyncio.Queue[bytes] = asyncio.Queue()
        writing = asyncio.create_task(_write(socket, frames))
        try:
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    break
                if message.data.strip() == "{}":
                    frames.put_nowait(b"{}")
                    continue
                said = _frame(message.data)
                if isinstance(said, Hello):
                    browser = await self._greet(said, socket, frames)
                elif browser is None:
                    break
                else:
                    self._heed(browser, said)
        except msgspec.MsgspecError:
            await socket.close(code=_NOT_SPOKEN)
        finally:
            writing.cancel()
            if browser is not None and browser.frames is frames:
                browser.frames = browser.socket = None
        return socket

    async def _greet(self, said: Hello, socket: web.WebSocketResponse, frames: asyncio.Queue[bytes]) -> _Browser:
        """Know a browser again, or give a new one its name; then send what it has not acknowledged."""
        browser = self._known.get(said.uaid or "")
        if browser is None:
            browser = _Browser(uuid.uuid4().hex)
            self._known[browser.uaid] = browser
        elif browser.socket is not None and browser.socket is not socket:
            await browser.socket.close()
        browser.socket, browser.frames = socket, frames
        browser.say(_said("hello", uaid=browser.uaid, status=_OK, use_webpush=True, broadcasts={}))
        now = self._clock()
        browser.waiting = {version: each for version, each in browser.waiting.items() if each.until > now}
        for each in browser.waiting.values():
            browser.say(each.frame)
        return browser

    def _heed(self, browser: _Browser, said: Register | Unregister | Ack | Nack | BroadcastSubscribe) -> None:
        match said:
            case Register(channel, key):
                browser.say(self._register(browser, channel, key))
            case Unregister(channel):
                for each in self._webpush.subscriptions:
                    if (each.browser, each.channel) == (browser.uaid, channel):
                        self._webpush.deaths.setdefault(each.id, int(self._clock() * 1000))
                browser.say(_said("unregister", channelID=channel, status=_OK))
            case Ack(updates):
                for update in updates:
                    if browser.waiting.pop(update.version, None) is not None:
                        browser.acknowledged.append(update)
            case Nack() | BroadcastSubscribe():
                pass

    def _register(self, browser: _Browser, channel: str, key: str | None) -> bytes:
        """Make a subscription whose private half the browser keeps."""
        try:
            vapid_key = from_base64url(key.rstrip("=")) if key else None
            uuid.UUID(channel)
        except ValueError:
            return _said("register", channelID=channel, status=_CONFLICT, pushEndpoint="")
        made = self._webpush.subscriptions.of_browser(browser.uaid, channel, vapid_key)
        return _said("register", channelID=channel, status=_OK, pushEndpoint=self._webpush.endpoint(made))

    def _hand_over(self, subscription: Subscription, request: Request) -> None:
        """Send a message that was taken to its browser, or keep it for as long as it is worth."""
        browser, version = self._known[subscription.browser], uuid.uuid4().hex
        ttl_s, topic = kept_s(request), request.headers.get("topic")
        frame: dict[str, Any] = {"channelID": subscription.channel, "version": version, "ttl": ttl_s}
        if request.body:
            headers = {"encoding": request.headers.get("content-encoding", "")}
            frame |= {"data": to_base64url(request.body), "headers": headers}
        message = _Message(_said("notification", **frame), subscription.channel, topic, self._clock() + ttl_s)
        if browser.frames is None and not ttl_s:
            return
        for old, each in list(browser.waiting.items()):
            if topic is not None and (each.channel, each.topic) == (message.channel, topic):
                del browser.waiting[old]
        browser.waiting[version] = message
        if len(browser.waiting) > WAITING_LIMIT:
            del browser.waiting[next(iter(browser.waiting))]
        browser.say(message.frame)


async def _write(socket: web.WebSocketResponse, frames: asyncio.Queue[bytes]) -> None:
    with suppress(ConnectionError):  # it went: what it has not acknowledged waits for its next hello
        while True:
            await socket.send_str((await frames.get()).decode())


def _said(message_type: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"messageType": message_type, **fields})
