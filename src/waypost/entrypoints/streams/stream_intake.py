"""The intake of one stream: read, accept, acknowledge; what cannot be read is buried.

    room for a batch -> read -> messages to submissions -> one durable write -> acknowledged | buried

Where intake takes nothing (the store is away, the backlog full, the caller over its limit) batches are kept in hand
and tried again, and nothing more is read. A message is acknowledged only when its notification is durable; read again
after a crash, it is known by its key.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import traceback
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from waypost.domain.errors import Conflict, ErrorCode, InvalidRequest, Unavailable
from waypost.domain.ids import format_id
from waypost.domain.submission import Submission
from waypost.entrypoints.limits import EntrypointLimits
from waypost.entrypoints.streams.messages import place_of, read_message
from waypost.pipeline.intake import Caller, Intake
from waypost.ports.source import Foreign, RefusedMessage, Source
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate, InProgress, Unwritten
from waypost.runtime.ticker import every
from waypost.telemetry import Event, Metric, Telemetry
from waypost.telemetry.tracing import Trace

BATCHES_AT_ONCE: Final = 5
"""The most batches at once: while some are written by one commit the next ones are read and decoded."""
LONGEST_PAUSE_S: Final = 1.0
MEASURE_S: Final = 5.0
LAST_WORDS_S: Final = 5.0
"""Seconds for batches in hand to be accepted and acknowledged when the process stops; then others have them."""

_WHY_LIMIT: Final = 800

T = TypeVar("T")


class _Trouble(Enum):
    """A reason why nothing is taken, the event that reports it once, and the one that reports its end."""

    AWAY = ("source", Event.SOURCE_AWAY, Event.SOURCE_BACK)
    LIMITED = ("limits", Event.SOURCE_WAITING, Event.SOURCE_RESUMED)
    WAITING = ("intake", Event.SOURCE_WAITING, Event.SOURCE_RESUMED)


class _Surprise(Struct, frozen=True):
    """The error of a failure for which no answer was foreseen."""


Answer = Acceptance | InvalidRequest | _Surprise


class StreamIntake:
    """The intake of one source, for one caller (fulfils ports.lifecycle.Lifecycle)."""

    def __init__(
        self,
        name: str,
        source: Source,
        intake: Intake,
        caller: Caller,
        telemetry: Telemetry,
        batch: int,
        limits: EntrypointLimits,
    ) -> None:
        self._name = name
        self._source = source
        self._intake = intake
        self._caller = caller
        self._telemetry = telemetry
        self._batch = limits.most(caller, batch)
        self._limits = limits
        self._stopping = asyncio.Event()
        self._room = asyncio.Semaphore(BATCHES_AT_ONCE)
        self._in_hand: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._faults: dict[_Trouble, str] = {}

    @property
    def fault(self) -> str | None:
        """The reason why nothing is taken, None while something is."""
        return next(iter(self._faults.values()), None)

    async def start(self) -> None:
        """Begin to read; a source that is away is waited for in the background."""
        await self._source.start()
        measuring = every(MEASURE_S, self._measure, self._telemetry, f"source {self._name}")
        self._tasks = [asyncio.create_task(self._read_on()), asyncio.create_task(measuring)]

    async def stop(self) -> None:
        """Read nothing more, let what is in hand be accepted, and leave the rest to others."""
        self._stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            if self._in_hand:
                await asyncio.wait(self._in_hand, timeout=LAST_WORDS_S)
        finally:
            late = list(self._in_hand)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
            await self._source.stop()

    async def _read_on(self) -> None:
        while True:
            await self._room.acquire()
            messages = await self._patiently(partial(self._source.read, self._batch), _Trouble.AWAY)
            if messages:
                self._telemetry.count(Metric.SOURCE_READ, len(messages), source=self._name)
                taking = asyncio.create_task(self._take(messages))
                self._in_hand.add(taking)
                taking.add_done_callback(self._taken)
            else:
                self._room.release()

    def _taken(self, taking: asyncio.Task[None]) -> None:
        self._in_hand.discard(taking)
        self._room.release()

    async def _take(self, messages: Sequence[Foreign]) -> None:
        """Accept notifications from *messages*; return when each is acknowledged or buried."""
        made = [self._read(each) for each in messages]
        asked = [(message, one) for message, one in zip(messages, made, strict=True) if isinstance(one, Submission)]
        refused = [one for one in made if isinstance(one, RefusedMessage)]
        await self._patiently(partial(self._limits.count, self._caller, len(asked)), _Trouble.LIMITED)
        places = () if self._intake.tracing is None else [place_of(message) for message, _ in asked]
        answers = await self._accepted([submission for _, submission in asked], places)
        done: list[Foreign] = []
        new = 0
        for (message, _), answer in zip(asked, answers, strict=True):
            if isinstance(answer, Accepted | Duplicate):
                done.append(message)
                new += isinstance(answer, Accepted)
            else:
                refused.append(RefusedMessage(message, *_reason(answer)))
        await self._patiently(partial(self._source.ack, done), _Trouble.AWAY)
        if refused:
            await self._bury(refused)
        for result, n in (("accepted", new), ("deduplicated", len(done) - new), ("refused", len(refused))):
            if n:
                self._telemetry.count(Metric.SOURCE_TAKEN, n, source=self._name, result=result)

    def _read(self, message: Foreign) -> Submission | RefusedMessage:
        try:
            return read_message(message, self._source.stream)
        except InvalidRequest as invalid:
            self._telemetry.count(Metric.REFUSED, app=self._caller.app, code=invalid.code)
            return RefusedMessage(message, *_reason(invalid))

    async def _bury(self, refused: Sequence[RefusedMessage]) -> None:
        await self._patiently(partial(self._source.bury, refused), _Trouble.AWAY)
        for each in refused:
            self._telemetry.event(Event.MESSAGE_REFUSED, source=self._name, place=each.message.place, code=each.code)

    async def _accepted(self, submissions: Sequence[Submission], places: Sequence[Trace | None]) -> list[Answer]:
        """Submit and return an answer to each; one that is in progress, or was not written, is submitted again.

        *places* are theirs in traces; empty where nothing is traced.
        """
        answers: list[Answer] = [InProgress(0)] * len(submissions)
        while waiting := [n for n, answer in enumerate(answers) if isinstance(answer, InProgress | Unwritten)]:
            of_these = [places[n] for n in waiting] if places else ()
            found = await self._submitted([submissions[n] for n in waiting], of_these)
            for n, answer in zip(waiting, found, strict=True):
                answers[n] = answer
            if wait_s := max(map(_wait_s, found), default=0.0):
                await self._pause(wait_s)
        return answers

    async def _submitted(self, submissions: Sequence[Submission], places: Sequence[Trace | None]) -> Sequence[Answer]:
        """Submit together; after a surprise, submit one by one, so that only one message has to bear it."""
        try:
            submit = partial(self._intake.submit, self._caller, submissions, places)
            return await self._patiently(submit, _Trouble.WAITING)
        except Exception as error:  # noqa: BLE001 - whatever one message does, the others go on
            if len(submissions) > 1:
                apart = [([each], places[n : n + 1]) for n, each in enumerate(submissions)]
                return [answer for each in apart for answer in await self._submitted(*each)]
            kind, _, place = _where(error).partition(" at ")
            self._telemetry.event(Event.REQUEST_FAILED, route=f"source {self._name}", error=kind, place=place)
            return [_Surprise()]

    async def _patiently(self, act: Callable[[], Awaitable[T]], trouble: _Trouble) -> T:
        """Repeat *act* until it can be done; a source, or a limit, that surprises counts as away."""
        _, began, ended = trouble.value
        while True:
            try:
                given = await act()
            except Exception as failed:
                if trouble is _Trouble.WAITING and not isinstance(failed, Unavailable):
                    raise
                known = failed if isinstance(failed, Unavailable) else Unavailable(_where(failed), ErrorCode.INTERNAL)
                if trouble not in self._faults:
                    self._telemetry.event(began, source=self._name, code=known.code, why=str(known))
                self._faults[trouble] = str(known)
                await self._pause(known.retry_after_s)
                continue
            if self._faults.pop(trouble, None) is not None:
                self._telemetry.event(ended, source=self._name)
            return given

    async def _pause(self, wanted_s: float) -> None:
        """Wait a while; once the process stops, the task that waits is as good as cancelled."""
        with contextlib.suppress(TimeoutError):
            pause_s = min(wanted_s, LONGEST_PAUSE_S) * (0.5 + random.random() / 2)  # noqa: S311 - spreads attempts
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()
            raise asyncio.CancelledError

    async def _measure(self) -> None:
        behind = await self._source.behind()
        if behind.waiting is not None:
            self._telemetry.gauge(Metric.SOURCE_WAITING, behind.waiting, source=self._name)
        if behind.held is not None:
            self._telemetry.gauge(Metric.SOURCE_HELD, behind.held, source=self._name)


def _wait_s(answer: Answer) -> float:
    """Return the seconds to wait before it is submitted again; 0 where it is not."""
    match answer:
        case InProgress(retry_after_ms):
            return retry_after_ms / 1_000
        case Unwritten(error):
            return error.retry_after_s
        case _:
            return 0.0


def _where(error: Exception) -> str:
    """Name the kind of a surprise and its place, not its text, which may quote what was read."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


def _reason(answer: Answer) -> tuple[ErrorCode, str]:
    """Return code and reason of a refusal, as a caller of the API is told them."""
    match answer:
        case InvalidRequest():
            return answer.code, str(answer)[:_WHY_LIMIT]
        case Conflicting(first_id):
            return Conflict.code, f"the idempotency key was used with another body, for {format_id(first_id)}"
        case _:
            return ErrorCode.INTERNAL, "an unexpected error; the log of the server has it"
