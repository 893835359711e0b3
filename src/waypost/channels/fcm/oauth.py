"""Access tokens, asked for ahead of time and with one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable

from waypost.channels.fcm.grants import Grant, Grants, Problem
from waypost.domain.outcome import CredentialRejected, Unreachable

RENEW_AT = 0.8
"""The part of a token's life after which the next is asked for."""
BACKOFF_BASE_S = 1.0
BACKOFF_CAP_S = 60.0
LEAST_LIFE_S, MOST_LIFE_S = 10.0, 86_400.0
"""How long a token is used at least and at most, whatever is said of its life: with none, it is tried all the same (FCM
answers 401 where it may not be), and the next is asked for in 8 s, not at once."""
SHORT_S = 5.0
SHORT_ALLOWED = 2
"""When more tokens than this in a row are refused within 5 s of being given, the next is asked for after a back-off."""


class AccessTokens:
    """A keeper of one valid access token; a task of its own asks for the next one at 80 % of its life."""

    def __init__(
        self,
        grants: Grants,
        *,
        loop: asyncio.AbstractEventLoop,
        on_denied: Callable[[CredentialRejected], None],
    ) -> None:
        self._grants = grants
        self._loop = loop
        self._on_denied = on_denied
        self._token = ""
        self._expires_at = 0.0
        self._asking = True
        self._asked = asyncio.Event()
        self._wanted = asyncio.Event()
        self._granted_at = -math.inf
        self._refused_in_a_row = 0
        self._waiting: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self.problem: Problem = Unreachable("oauth_unavailable", "there is no access token yet")

    def start(self, *, ahead: bool) -> None:
        """Ask for the first token; not *ahead*, as soon as somebody wants it."""
        if ahead:
            self._wanted.set()
        self._task = self._loop.create_task(self._keep())

    async def stop(self) -> None:
        """Stop asking for tokens; what waits for one is told that there is none."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._token = ""
        self._tell_waiting()

    def current(self) -> str:
        """Return the access token; "" if none is valid: `problem` says why, unless one is being asked for."""
        return self._token if self._loop.time() < self._expires_at else ""

    def then(self, go_on: Callable[[], None]) -> None:
        """Call *go_on* once there is a token, or once it is known that there is none; at once where that is known."""
        self._wanted.set()
        if self._asking and not self.current():
            self._waiting.append(go_on)
        else:
            go_on()

    def renew(self, refused: str) -> None:
        """Ask for a new token now, if *refused* is the one in use."""
        if refused == self._token:
            is_short = self._loop.time() - self._granted_at < SHORT_S
            self._refused_in_a_row = self._refused_in_a_row + 1 if is_short else 0
            self._token = ""
            self._asking = True
            self._asked.set()

    async def _keep(self) -> None:
        failures = 0
        await self._wanted.wait()
        while True:
            self._asking = True
            answer = await self._grants.ask()
            self._asking = False
            self._asked.clear()
            if isinstance(answer, Grant):
                failures = 0
                pause_s = self._use(answer) * RENEW_AT
            else:
                pause_s = _backoff_s(failures)
                failures += 1
                self._lack(answer)
            self._tell_waiting()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._asked.wait()
            if not self._token and self._refused_in_a_row > SHORT_ALLOWED:
                self._asking = False
                self._lack(CredentialRejected("UNAUTHENTICATED", "each new access token is refused at once"))
                self._tell_waiting()
                await asyncio.sleep(_backoff_s(self._refused_in_a_row))

    def _use(self, grant: Grant) -> float:
        """Take a token into use; return the seconds that it is used for at most."""
        self._token = grant.access_token
        self._granted_at = self._loop.time()
        life_s = min(max(grant.expires_in, LEAST_LIFE_S), MOST_LIFE_S)
        self._expires_at = self._granted_at + life_s
        return life_s

    def _lack(self, problem: Problem) -> None:
        self.problem = problem
        if isinstance(problem, CredentialRejected):
            self._on_denied(problem)

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()


def _backoff_s(failures: int) -> float:
    return min(BACKOFF_BASE_S * (1 << min(failures, 10)), BACKOFF_CAP_S)
