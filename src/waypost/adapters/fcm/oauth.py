"""Access tokens, asked for ahead of time and one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from waypost.adapters.fcm.grants import Grant, Grants, Problem
from waypost.domain.outcome import Denied, Unreachable

RENEW_AT = 0.8
"""The part of a token's life after which the next is asked for."""
BACKOFF_BASE_S = 1.0
BACKOFF_CAP_S = 60.0


class AccessTokens:
    """Keeps one valid access token; a task of its own asks for the next one at 80 % of its life."""

    def __init__(
        self,
        grants: Grants,
        *,
        loop: asyncio.AbstractEventLoop,
        on_denied: Callable[[Denied], None],
    ) -> None:
        self._grants = grants
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
            answer = await self._grants.ask()
            self._asking = False
            self._asked.clear()
            if isinstance(answer, Grant):
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

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()
