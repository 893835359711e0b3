"""The members of topics, and messages to all of them.

Sources: firebase.google.com, "Manage topic subscriptions" (one device a call) and developers.google.com/instance-id,
"Instance ID server reference" (1,000 tokens a call, no installation ids).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from waypost.channels.fcm.errors import CODES, code_of
from waypost.channels.fcm.grants import project_and_grants
from waypost.channels.fcm.oauth import AccessTokens
from waypost.channels.fcm.payload import INSTALLATION_PREFIX, TOPIC_NAME
from waypost.channels.fcm.settings import CHANNEL, FcmSettings
from waypost.channels.push.answers import Meaning
from waypost.channels.push.origin import authority_of, origin_of, trust
from waypost.channels.push.patience import until
from waypost.channels.push.reading import read_json
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Unreachable
from waypost.http2 import Answer, Pool, PoolSettings, Result, Unsent, encode_headers
from waypost.ports.clock import Clock

GOOGLE: Final = "https://fcm.googleapis.com"
INSTANCE_ID: Final = "https://iid.googleapis.com"
MANY: Final = 1000
"""The most tokens in one call of the Instance ID service."""


class Done(Struct, frozen=True):
    """The answer that it is as was asked, whether or not it was so before."""


class NotDone(Struct, frozen=True):
    """The answer that nothing was changed, or nobody can say; *again* where it may work later."""

    code: str
    why: str
    again: bool


INSTANCE_ID_CODES: dict[str, NotDone] = {
    code: NotDone(code, why, again)
    for code, why, again in (
        ("NOT_FOUND", "the app is no longer on the device", False),
        ("INVALID_ARGUMENT", "the token cannot be one, or is an installation id", False),
        ("TOO_MANY_TOPICS", "the device has 2,000 topics already", False),
        ("RESOURCE_EXHAUSTED", "too many changes a second", True),
        ("PERMISSION_DENIED", "the token belongs to another project", False),
        ("INTERNAL", "the service failed", True),
        ("UNAVAILABLE", "the service is not available", True),
    )
}
"""What the Instance ID service says of one token; any other code may work later."""


class _Line(Struct):
    error: str = ""


class _Lines(Struct):
    results: list[_Line]


class _Subscription(Struct, rename="camel"):
    topic_name: str = ""


class _Subscriptions(Struct, rename="camel"):
    topic_subscriptions: list[_Subscription] = []
    next_page_token: str = ""


_lines = msgspec.json.Decoder(_Lines)
_subscriptions = msgspec.json.Decoder(_Subscriptions)


class TopicMembers:
    """The topics of one project; a device is named as registered, by its token or ``fid:`` and installation id."""

    def __init__(self, app: AppId, settings: FcmSettings, *, clock: Clock) -> None:
        self._app = app
        self._settings = settings
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop
        self._project_id: str
        self._access: AccessTokens
        self._pools: dict[str, tuple[Pool, str]] = {}

    async def start(self) -> None:
        """Read the service account; connections are opened with the first call. ConfigurationError as the sender's."""
        self._loop = asyncio.get_running_loop()
        section = CredentialId(self._app, CHANNEL).section
        tls = trust(section, self._settings.ca_file, "http/1.1")
        self._project_id, grants = await project_and_grants(section, self._settings, tls, self._clock)
        self._access = AccessTokens(grants, loop=self._loop, on_denied=lambda denied: None)
        for url in (GOOGLE, INSTANCE_ID):
            origin = origin_of(section, self._settings.endpoint or url, self._settings.ca_file, self._settings.proxy)
            limits = PoolSettings(min_connections=0, max_connections=1, max_streams=100, idle_timeout_s=60.0)
            self._pools[url] = (Pool(origin, limits, loop=self._loop), authority_of(origin))
            await self._pools[url][0].start()
        self._access.start(ahead=True)

    async def stop(self) -> None:
        """End what runs and close."""
        if not self._pools:
            return
        await self._access.stop()
        for pool, _ in self._pools.values():
            await pool.close()

    async def subscribe(self, device: str, topic: str) -> Done | NotDone:
        """Let *device* hear *topic*."""
        return await self._change("PATCH", device, topic)

    async def unsubscribe(self, device: str, topic: str) -> Done | NotDone:
        """Let *device* hear *topic* no more."""
        return await self._change("DELETE", device, topic)

    async def topics_of(self, device: str) -> list[str] | NotDone:
        """List the topics that *device* hears."""
        found: list[str] = []
        page = ""
        while True:
            path = self._collection(device) + (f"?page_token={quote(page, safe='')}" if page else "")
            result = await self._call(GOOGLE, "GET", path, b"")
            if not isinstance(result, Answer) or result.status != 200:
                return _not_done(result)
            got = read_json(_subscriptions, result.body) or _Subscriptions()
            found += [each.topic_name for each in got.topic_subscriptions]
            page = got.next_page_token
            if not page:
                return found

    async def subscribe_many(self, tokens: Sequence[str], topic: str) -> list[Done | NotDone]:
        """Let all *tokens* hear *topic*: an answer for each, in their order."""
        return await self._change_many("/iid/v1:batchAdd", tokens, topic)

    async def unsubscribe_many(self, tokens: Sequence[str], topic: str) -> list[Done | NotDone]:
        """Let none of *tokens* hear *topic*: an answer for each, in their order."""
        return await self._change_many("/iid/v1:batchRemove", tokens, topic)

    async def _change(self, method: str, device: str, topic: str) -> Done | NotDone:
        if not TOPIC_NAME.fullmatch(topic):
            return NotDone("INVALID_ARGUMENT", "the topic is not one", again=False)
        path = f"{self._collection(device)}/{quote(topic, safe='')}"
        result = await self._call(GOOGLE, method, path, b"{}" if method == "PATCH" else b"")
        if isinstance(result, Answer):
            if result.status in (200, 201):
                return Done()
            if method == "DELETE" and result.status == 404 and code_of(result) == "NOT_FOUND":
                return Done()
        return _not_done(result)

    async def _change_many(self, path: str, tokens: Sequence[str], topic: str) -> list[Done | NotDone]:
        found: list[Done | NotDone] = []
        for start in range(0, len(tokens), MANY):
            some = tokens[start : start + MANY]
            body = msgspec.json.encode({"to": f"/topics/{topic}", "registration_tokens": some})
            result = await self._call(INSTANCE_ID, "POST", path, body)
            answer = read_json(_lines, result.body) if isinstance(result, Answer) and result.status == 200 else None
            if answer is None or len(answer.results) != len(some):
                found += [_not_done(result)] * len(some)
            else:
                found += [_of_line(line.error) for line in answer.results]
        return found

    def _collection(self, device: str) -> str:
        name = quote(device.removeprefix(INSTALLATION_PREFIX), safe="")
        return f"/v1/projects/{self._project_id}/registrations/{name}/topicSubscriptions"

    async def _call(self, url: str, method: str, path: str, body: bytes) -> Result | CredentialRejected | Unreachable:
        """Send one request with an access token, or say why there is none."""
        known: asyncio.Future[None] = self._loop.create_future()
        self._access.then(lambda: known.set_result(None))
        await known
        access_token = self._access.current()
        if not access_token:
            return self._access.problem
        pool, authority = self._pools[url]
        head = [(b":method", method.encode()), (b":scheme", b"https"), (b":authority", authority.encode())]
        head += [(b":path", path.encode()), (b"authorization", f"Bearer {access_token}".encode())]
        head += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))] if body else []
        head += [(b"access_token_auth", b"true")] if url == INSTANCE_ID else []
        ended: asyncio.Future[Result] = self._loop.create_future()
        patience = until(self._loop.time())
        pool.request(encode_headers(head), body, patience.deadline, ended.set_result, patience.answer_by)
        return await ended


def _of_line(code: str) -> Done | NotDone:
    if not code:
        return Done()
    return INSTANCE_ID_CODES.get(code, NotDone(code, "an answer that is not documented", again=True))


def _not_done(result: Result | CredentialRejected | Unreachable) -> NotDone:
    match result:
        case CredentialRejected(code, why):
            return NotDone(code, why, again=False)
        case Unreachable(code, why):
            return NotDone(code, why, again=True)
        case Answer():
            code = code_of(result)
            meaning, why = CODES.get(code, (Meaning.UNSURE, f"an answer with status {result.status}"))
            return NotDone(code, why, again=meaning in (Meaning.THROTTLED_WHOLE, Meaning.UNSURE))
        case Unsent(reason):
            return NotDone("not_sent", reason, again=True)
        case _:
            return NotDone(result.kind.value, result.reason, again=True)
