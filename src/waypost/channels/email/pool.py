"""The connections to an SMTP server: some at once, opened when there is work, kept while they may have more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from waypost.channels.email.access import Access
from waypost.channels.email.errors import Stage
from waypost.channels.email.session import Failed, Mail, Session, late, lost, opened
from waypost.domain.outcome import CredentialRejected, Outcome, Throttled, Unreachable
from waypost.http2 import ConnectFailed, ConnectionClosed, ConnectionOpened, PoolEvent


class Task(Struct, eq=False):
    """A message that is to be carried; *done* is called once."""

    build: Callable[[], Mail]
    done: Callable[[Outcome], None]
    begin_by: float
    """By the loop's clock: what has not begun by then is not sent."""
    answer_by: float


class PoolLimits(Protocol):
    """Limits of what is opened, from the settings."""

    @property
    def connections(self) -> int:
        """The most connections."""
        ...

    @property
    def idle_s(self) -> int:
        """Seconds for which one without work is kept."""
        ...


FEWER_S: Final = 30.0
"""Seconds for which no more connections are tried after the server refused one while others stood."""
STOPPED: Final = Unreachable("not_sent", "the sender was stopped")
TOO_LATE: Final = Unreachable("not_sent", "no connection was free in time")


class SmtpPool:
    """The connections of one sender."""

    def __init__(self, access: Access, limits: PoolLimits, saw: Callable[[PoolEvent], None]) -> None:
        self.access, self.saw = access, saw
        self.open = 0
        """The sessions that are open now."""
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Task] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._working: set[_Carrier] = set()
        self._running: set[asyncio.Task[None]] = set()
        """Those that work, and those that still say goodbye."""
        self._stopping = False
        self._enough_until = 0.0

    def add(self, task: Task) -> None:
        """Have *task* carried; never before this returns."""
        self._waiting.append(task)
        if self._idle:
            self._idle.pop().set_result(None)
        elif len(self._working) < self._limits.connections and not self._has_enough():
            carrier = _Carrier(self)
            self._working.add(carrier)
            running = self._loop.create_task(carrier.carry_on())
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def stop(self, timeout_s: float) -> None:
        """Let what is on its way end, for *timeout_s* at most, then close; what waits is given back."""
        self._stopping = True
        self._give_up(STOPPED)
        for waker in self._idle:
            waker.set_result(None)
        self._idle.clear()
        running = tuple(self._running)
        if running:
            _, unfinished = await asyncio.wait(running, timeout=timeout_s)
            for each in unfinished:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def retire(self, carrier: _Carrier) -> None:
        """Count on *carrier* no more: what comes next begins another one."""
        self._working.discard(carrier)

    async def next(self) -> Task | None:
        """Wait for what is to be carried; None after a while without."""
        while not self._waiting:
            if self._stopping:
                return None
            waker = self._loop.create_future()
            self._idle.append(waker)
            try:
                async with asyncio.timeout(self._limits.idle_s):
                    await waker
            except TimeoutError:
                if waker in self._idle:
                    self._idle.remove(waker)
                if not self._waiting:
                    return None
        return self._waiting.popleft()

    def failed(self, task: Task, outcome: Outcome) -> None:
        """Note that *task* found no session: others may carry it; without others, what waits comes to the same."""
        why = outcome.why if isinstance(outcome, Unreachable | CredentialRejected) else "the server wants fewer"
        self.saw(ConnectFailed(why, FEWER_S))
        if self.open and not self._stopping:
            self._enough_until = self._loop.time() + FEWER_S
            self._waiting.appendleft(task)
            if self._idle:
                self._idle.pop().set_result(None)
            return
        task.done(outcome)
        self._give_up(outcome)

    def _has_enough(self) -> bool:
        return self.open > 0 and self._loop.time() < self._enough_until

    def _give_up(self, outcome: Outcome) -> None:
        while self._waiting:
            self._waiting.popleft().done(outcome)


class _Carrier:
    """A carrier of one message after the other, by a session of its own."""

    def __init__(self, pool: SmtpPool) -> None:
        self._pool = pool
        self._session: Session | None = None
        self._loop = asyncio.get_running_loop()

    async def carry_on(self) -> None:
        """Carry what there is, until there is nothing for a while, or no session."""
        try:
            while (task := await self._pool.next()) is not None:
                if not await self._carry(task):
                    return
        finally:
            self._pool.retire(self)
            await self._close("idle")

    async def _carry(self, task: Task) -> bool:
        """Carry *task*, and tell whether another one can be."""
        try:
            outcome = await self._try(task)
        except Failed as failed:
            self._pool.retire(self)
            self._pool.failed(task, failed.outcome)
            return False
        except BaseException:  # we were stopped, or failed ourselves
            task.done(STOPPED if self._session is None else lost(self._session.stage))
            raise
        task.done(outcome)
        return True

    async def _try(self, task: Task) -> Outcome:
        if self._loop.time() >= task.begin_by:
            return TOO_LATE
        mail = task.build()
        if self._session is not None:
            outcome = await self._by(self._session, mail, task)
            was_lost = not self._session.is_open
            again = self._session.stage is not Stage.DOT and isinstance(outcome, Unreachable | Throttled)
            if not was_lost:
                return outcome
            await self._close("lost")
            if not again or self._loop.time() >= task.begin_by:
                return outcome
        self._session = await self._opened(task)
        outcome = await self._by(self._session, mail, task)
        if not self._session.is_open:
            await self._close("lost")
        return outcome

    async def _opened(self, task: Task) -> Session:
        try:
            async with asyncio.timeout_at(task.begin_by):
                session = await opened(self._pool.access)
        except TimeoutError:
            raise Failed(late(Stage.GREETING)) from None
        self._pool.open += 1
        self._pool.saw(ConnectionOpened())
        return session

    async def _by(self, session: Session, mail: Mail, task: Task) -> Outcome:
        try:
            async with asyncio.timeout_at(task.answer_by):
                return await session.carry(mail)
        except TimeoutError:
            return late(session.stage)

    async def _close(self, why: str) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._pool.open -= 1
            await session.close()
            self._pool.saw(ConnectionClosed(why))
