"""Access tokens, asked for ahead of time and one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable

import aiohttp
import msgspec
from msgspec import Struct

from waypost.adapters.fcm.credentials import ServiceAccount
from waypost.domain.outcome import Denied, Unreachable
from waypost.ports.clock import Clock

TIMEOUT_S = 10.0
RENEW_AT = 0.8
"""The part of a token's life after which the next is asked for."""
BACKOFF_BASE_S = 1.0
BACKOFF_CAP_S = 60.0
_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"

Problem = Denied | Unreachable
"""Why there is no access token, as the outcome of a delivery that needed one."""


class _Grant(Struct):
    access_token: str
    expires_in: float = 3600


class _Fault(Struct):
    error: str


class AccessTokens:
    """Keeps one valid access token; a task of its own asks for the next one at 80 % of its life."""

    def __init__(
        self,
        account: ServiceAccount,
        tls: ssl.SSLContext,
        *,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        on_denied: Callable[[Denied], None],
    ) -> None:
        self._account = account
        self._tls = tls
        self._clock = clock
        self._loop = loop
        self._on_denied = on_denied
        self._token = ""
        self._expires_at = 0.0
        self._asking = True
        self._asked = asyncio.Event()
        self._waiting: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self.problem: Problem = Unreachable("oauth_unavailable", "there is no access token yet")

    def start(self) -> None:
        """Begin to ask for the first token."""
        self._task = self._loop.create_task(self._keep())

    async def stop(self) -> None:
        """Ask no more; what waits for a token is told that there is none."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._token = ""
        self._tell_waiting()

    def current(self) -> str:
        """The access token; "" if there is none that is valid: `problem` says why, unless one is being asked for."""
        return self._token if self._loop.time() < self._expires_at else ""

    def then(self, go_on: Callable[[], None]) -> None:
        """Call *go_on* once there is a token, or once it is known that there is none; at once where that is known."""
        if self._asking and not self.current():
            self._waiting.append(go_on)
        else:
            go_on()

    def renew(self, refused: str) -> None:
        """Ask for a new token now, if *refused* is the one in use."""
        if refused == self._token:
            self._token = ""
            self._asking = True
            self._asked.set()

    async def _keep(self) -> None:
        failures = 0
        while True:
            self._asking = True
            answer = await self._ask()
            self._asking = False
            self._asked.clear()
            if isinstance(answer, _Grant):
                failures = 0
                self._token = answer.access_token
                self._expires_at = self._loop.time() + answer.expires_in
                pause_s = answer.expires_in * RENEW_AT
            else:
                pause_s = min(BACKOFF_BASE_S * 2**failures, BACKOFF_CAP_S)
                failures = min(failures + 1, 10)
                self.problem = answer
                if isinstance(answer, Denied):
                    self._on_denied(answer)
            self._tell_waiting()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._asked.wait()

    async def _ask(self) -> _Grant | Problem:
        form = {"grant_type": _GRANT_TYPE, "assertion": self._account.assertion(self._clock.now())}
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
                session.post(self._account.token_uri, data=form, ssl=self._tls, allow_redirects=False) as answer,
            ):
                return _read(answer.status, await answer.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Unreachable("oauth_unavailable", f"the token endpoint cannot be reached: {type(error).__name__}")

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()


def _read(status: int, body: bytes) -> _Grant | Problem:
    """RFC 6749 sections 5.1 and 5.2."""
    try:
        if status == 200:
            return msgspec.json.decode(body, type=_Grant)
        code = msgspec.json.decode(body, type=_Fault).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Unreachable("oauth_unavailable", f"the token endpoint answered {status} without a token")
    if status in (400, 401, 403):
        return Denied(code, "the token endpoint refuses the service account: is the key valid and the clock right?")
    return Unreachable("oauth_unavailable", f"the token endpoint answered {status}")
