"""Calls to Google that are no messages: who hears a topic, who is in a device group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.channels.fcm.errors import CODES, code_of
from waypost.channels.fcm.grants import project_and_grants
from waypost.channels.fcm.oauth import AccessTokens
from waypost.channels.fcm.settings import CHANNEL, GOOGLE, FcmSettings
from waypost.channels.push.answers import Meaning
from waypost.channels.push.origin import authority_of, origin_of, trust
from waypost.channels.push.patience import until
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Unreachable
from waypost.http2 import Answer, Pool, PoolSettings, Result, Unsent, encode_headers
from waypost.ports.clock import Clock

INSTANCE_ID: Final = "https://iid.googleapis.com"

FOR_ACCESS_TOKENS: Final = ((b"access_token_auth", b"true"),)
"""The header with which the older services take an access token."""

Called = Result | CredentialRejected | Unreachable
"""The result of a call, or the reason why there was no access token for it."""


class Done(Struct, frozen=True):
    """The answer that it is as was asked, whether or not it was so before."""


class NotDone(Struct, frozen=True):
    """The answer that nothing was changed, or nobody can say; *again* where it may work later."""

    code: str
    why: str
    again: bool


class GoogleCalls:
    """The calls of one project, with its access token."""

    def __init__(self, app: AppId, settings: FcmSettings, *, clock: Clock) -> None:
        self._app = app
        self._settings = settings
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop
        self.project_id: str
        self._access: AccessTokens
        self._pools: dict[str, tuple[Pool, str]] = {}

    async def start(self) -> None:
        """Read the service account; connections are opened with the first call. ConfigurationError as the sender's."""
        self._loop = asyncio.get_running_loop()
        section = CredentialId(self._app, CHANNEL).section
        tls = trust(section, self._settings.ca_file, "http/1.1")
        self.project_id, grants = await project_and_grants(section, self._settings, tls, self._clock)
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

    async def call(
        self, url: str, method: str, path: str, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> Called:
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
        head += headers
        ended: asyncio.Future[Result] = self._loop.create_future()
        patience = until(self._loop.time())
        pool.request(encode_headers(head), body, patience.deadline, ended.set_result, patience.answer_by)
        return await ended


def not_done(result: Called) -> NotDone:
    """Explain a call that changed nothing, as far as anybody can say."""
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
