"""A stream of submissions: read ahead within a bound, accepted in order, each acknowledged once it is durable."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, WaypostError
from waypost.entrypoints.grpc.answers import submitted
from waypost.entrypoints.grpc.calls import AuthenticatedCall, shutting_down
from waypost.entrypoints.grpc.refusals import foreseen, status_of
from waypost.entrypoints.submitting import BATCH_LIMIT, Submitted
from waypost.v1 import notifications_pb2 as pb

_ENDS = (ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN)

SubmitAll = Callable[[Sequence[pb.Submission]], Awaitable[list[Submitted | WaypostError]]]


class SubmissionStream:
    """A stream of submissions; at most *limit* items wait for their acknowledgement, beside those of the last message.

    *at_once* of them are submitted together.
    """

    def __init__(self, call: AuthenticatedCall, submit: SubmitAll, limit: int, at_once: int) -> None:
        self._call = call
        self._submit = submit
        self._limit = limit
        self._at_once = at_once
        self._waiting: deque[pb.StreamItem] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._reading: asyncio.Task[None] | None = None
        self._closing = False

    def close(self) -> None:
        """Read nothing more; what was read is acknowledged, then the stream ends as UNAVAILABLE."""
        self._closing = True
        self._news.set()
        if self._reading is not None:
            self._reading.cancel()

    async def run(self) -> None:
        """Run until the caller has sent all and has every acknowledgement."""
        self._reading = reading = asyncio.create_task(self._read())
        reading.add_done_callback(lambda _: self._news.set())
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    await self._acknowledge()
                if self._closing:
                    raise shutting_down()
                if reading.done():
                    reading.result()
                    return
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):  # it was heard, or nobody is left to tell
                await reading

    async def _read(self) -> None:
        while (message := await self._call.next(pb.SubmitStreamRequest)) is not None:
            if len(message.items) > BATCH_LIMIT:
                raise InvalidRequest((Fault("items", f"holds {len(message.items)}, at most {BATCH_LIMIT}"),))
            self._waiting.extend(message.items)
            self._news.set()
            if len(self._waiting) >= self._limit:
                self._room.clear()
                await self._room.wait()

    async def _acknowledge(self) -> None:
        """Accept what has come, and acknowledge it."""
        items = list(islice(self._waiting, self._at_once))
        answers = await self._answers(items)
        acknowledgements = [
            _acknowledgement(item.sequence, answer) for item, answer in zip(items, answers, strict=True)
        ]
        await self._call.write(pb.SubmitStreamResponse(acknowledgements=acknowledgements))
        for _ in items:
            self._waiting.popleft()
        if len(self._waiting) < self._limit:
            self._room.set()

    async def _answers(self, items: Sequence[pb.StreamItem]) -> Sequence[Submitted | WaypostError]:
        """Submit items and answer each; a refusal for now answers every item, a refused caller ends the stream."""
        try:
            await self._call.still()
            return await self._submit([item.notification for item in items])
        except WaypostError as refusal:
            if foreseen(refusal) is None or refusal.code in _ENDS:
                raise
            return [refusal] * len(items)


def _acknowledgement(sequence: int, answer: Submitted | WaypostError) -> pb.Acknowledgement:
    if isinstance(answer, Submitted):
        return pb.Acknowledgement(sequence=sequence, notification=submitted(answer))
    return pb.Acknowledgement(sequence=sequence, error=status_of(answer))
