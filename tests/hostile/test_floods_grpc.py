"""gRPC beside frames that a client would never send: callers are answered all along, and what it costs is bounded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import hpack
import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.adapters.grpc.service import DEFAULTS, HERE, Door, served, shown
from tests.hostile.crowds import crowd, weight_kib
from tests.tables import AddRow
from waypost.entrypoints.grpc import service
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.entrypoints.grpc.streaming import SubmissionStream
from waypost.telemetry import Event
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAMES = 20_000
SLACK_KIB = 100_000
FLOOD_S = 60
IN_FLIGHT = 100
"""Items of a stream that may wait for their acknowledgements."""
ITEMS = 100
"""Those of one message."""
SENT_LIMIT = 200_000
TURNS = 20
"""Calls that are answered while a stream makes no progress, before it counts as held up."""


def head(door: Door) -> bytes:
    """The header block of a call."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", "/waypost.v1.Notifications/SubmitStream")]
    fields += [(":authority", "x"), ("content-type", "application/grpc"), ("te", "trailers"), *door.key]
    return hpack.Encoder().encode(fields)


def rapid_reset(block: bytes) -> Iterator[Frame]:
    """Calls that are called off at once (CVE-2023-44487)."""
    for n in range(1, 2 * FRAMES, 2):
        yield HeadersFrame(n, block, flags=["END_HEADERS"])
        yield RstStreamFrame(n, error_code=8)


def continuation(block: bytes) -> Iterator[Frame]:
    """A head without end (CVE-2024-27316 and its like)."""
    yield HeadersFrame(1, block)
    field = hpack.Encoder().encode([("x-more", "y" * 1_000)])
    for _ in range(FRAMES):
        yield ContinuationFrame(1, field)


def settings(block: bytes) -> Iterator[Frame]:
    """Each is to be acknowledged (CVE-2019-9515)."""
    for n in range(FRAMES):
        yield SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: 1_000 + n})


def pings(block: bytes) -> Iterator[Frame]:
    """Each is to be answered (CVE-2019-9512)."""
    for n in range(FRAMES):
        yield PingFrame(0, n.to_bytes(8, "big"))


def nothing(block: bytes) -> Iterator[Frame]:
    """Pieces of a message without a byte (CVE-2019-9518)."""
    yield HeadersFrame(1, block, flags=["END_HEADERS"])
    for _ in range(FRAMES):
        yield DataFrame(1, b"")


def windows(block: bytes) -> Iterator[Frame]:
    """A call whose answers may come a byte at a time."""
    yield HeadersFrame(1, block, flags=["END_HEADERS"])
    for _ in range(FRAMES):
        yield WindowUpdateFrame(1, window_increment=1)


Flood = Callable[[bytes], Iterator[Frame]]


@pytest.mark.parametrize("flood", [rapid_reset, continuation, settings, pings, nothing, windows])
async def test_a_flood_of_frames_holds_up_nobody(flood: Flood, table: AddRow) -> None:
    """Nor does it fill the memory, though nothing that is answered is read."""
    async with served(GrpcSettings(listen=HERE, calls_limit=100)) as door:
        before = weight_kib()
        async with flooding(door, flood) as done:
            for n in range(20):
                made = await door.stub.Submit(shown(f"user-{n}"), metadata=door.key, wait_for_ready=True, timeout=60)
                assert made.id
            await done
        grown = weight_kib() - before
        table("floods of frames", flood=flood.__name__, frames=FRAMES, grown=f"{grown // 1024} MiB")
        assert grown < SLACK_KIB
        assert (await door.stub.Submit(shown("last"), metadata=door.key, timeout=60)).id
    assert Event.REQUEST_FAILED not in [event for event, _ in door.service.telemetry.events]


@asynccontextmanager
async def flooding(door: Door, flood: Flood) -> AsyncIterator[asyncio.Future[None]]:
    """Frames on a connection of their own; done when all are written, or the server has had enough."""
    _, writer = await asyncio.open_connection("127.0.0.1", door.server.port, limit=1_024)

    async def write() -> None:
        writer.write(PREFACE + SettingsFrame(0).serialize())
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(FLOOD_S):
                for n, frame in enumerate(flood(head(door))):
                    writer.write(frame.serialize())
                    if n % 100 == 0:
                        await writer.drain()

    writing = asyncio.create_task(write())
    try:
        yield writing
    finally:
        await writing
        writer.transport.abort()


async def test_a_stream_that_takes_no_acknowledgements_is_read_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for it is bounded, and so is what it may send; a refusal is the longest acknowledgement.

    Once it takes them, all that it sent is acknowledged: that they were not taken is what held it up.
    """
    streams: list[SubmissionStream] = []

    def seen(*made_of: Any) -> SubmissionStream:
        streams.append(SubmissionStream(*made_of))
        return streams[-1]

    monkeypatch.setattr(service, SubmissionStream.__name__, seen)
    async with served(GrpcSettings(listen=HERE, stream_in_flight=IN_FLIGHT)) as door:
        before = weight_kib()
        silent = SilentStream(door)
        writing = asyncio.create_task(silent.write())
        sent = -1
        while silent.sent != sent and not writing.done():
            sent = silent.sent
            for _ in range(TURNS):
                assert (await door.stub.Submit(shown("beside"), metadata=door.key, timeout=60)).id
        assert IN_FLIGHT <= silent.sent < SENT_LIMIT
        assert IN_FLIGHT <= len(streams[0]._waiting) < IN_FLIGHT + ITEMS
        assert weight_kib() - before < SLACK_KIB
        assert await silent.acknowledged() == list(range(silent.sent))
        await writing


class SilentStream:
    """A stream whose caller writes and reads nothing, until it is asked for all acknowledgements."""

    def __init__(self, door: Door) -> None:
        self._call = door.channel.stream_stream("/waypost.v1.Notifications/SubmitStream")(metadata=door.key)
        self._is_enough = False
        self.sent = 0

    async def write(self) -> None:
        """Write on while that is taken."""
        while not self._is_enough and self.sent < SENT_LIMIT:
            numbers = range(self.sent, self.sent + ITEMS)
            items = [pb.StreamItem(sequence=n, notification=pb.Submission(body="b" * 1_000)) for n in numbers]
            await self._call.write(pb.SubmitStreamRequest(items=items).SerializeToString())
            self.sent += ITEMS
        await self._call.done_writing()

    async def acknowledged(self) -> list[int]:
        """Write no more, and read the numbers of what is acknowledged to the end."""
        self._is_enough = True
        numbers: list[int] = []
        while (answer := await self._call.read()) is not grpc.aio.EOF:
            numbers += [each.sequence for each in pb.SubmitStreamResponse.FromString(answer).acknowledgements]
        return numbers


@pytest.mark.parametrize(
    ("count", "said"),
    [
        pytest.param(500, PREFACE + SettingsFrame(0).serialize(), id="greeted"),
        pytest.param(10_000, b"", id="10,000 silent", marks=[pytest.mark.long, pytest.mark.timeout(600)]),
        pytest.param(
            10_000,
            PREFACE + SettingsFrame(0).serialize(),
            id="10,000 greeted",
            marks=[pytest.mark.long, pytest.mark.timeout(600)],
        ),
    ],
)
async def test_a_crowd_holds_up_nobody_and_is_closed(count: int, said: bytes) -> None:
    """Those who said nothing within 10 s, those who greeted when they have been idle for long enough."""
    limits = GrpcSettings(listen=DEFAULTS.listen, idle_s=1 if count < 10_000 else 30, connections_limit=2 * count)
    async with served(limits) as door, crowd(door.server.port, count, said) as held:
        opened = asyncio.create_task(held.said("open"))
        while not opened.done():
            assert (await door.stub.Submit(shown(), metadata=door.key, timeout=60)).id
        await opened
        closed = asyncio.create_task(held.said(f"closed {count}"))
        while not closed.done():
            alone = [("grpc.use_local_subchannel_pool", 1)]
            other: Any = grpc.aio.insecure_channel(f"127.0.0.1:{door.server.port}", alone)
            async with other:
                call = other.unary_unary("/waypost.v1.Notifications/Submit")
                await call(shown().SerializeToString(), metadata=door.key, timeout=60)
        await closed
