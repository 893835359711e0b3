"""What a notification costs by gRPC, beside REST in the same run; all for tomorrow, so that nothing is sent beside."""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from benchmarks.programs import in_rust
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.bench.stores import Base, embedded
from waypost.v1 import notifications_pb2 as pb
from waypost.v1.notifications_pb2_grpc import NotificationsStub

NOTIFICATIONS = int(os.environ.get("NOTIFICATIONS", "4000"))
WORKERS = 2
ROUNDS = 3
AT_ONCE = 32
CHANNELS = 8
"""A channel is one connection, and a connection one worker's."""
BATCH = 100
AHEAD = 20
"""Messages of a stream that its caller writes before it waits for an acknowledgement of the first."""

Call = Callable[[Any, range], Awaitable[None]]


def run() -> list[Row]:
    """Rounds in turn; the medians."""
    ways: dict[str, Callable[[BenchStack, int, int], float]] = {
        "REST, single POSTs": partial(_rest, 1, AT_ONCE),
        "gRPC, unary": partial(_grpc, _unary, AT_ONCE),
        "gRPC, streams, 1 item a message": partial(_grpc, partial(_stream, 1), CHANNELS),
        f"REST, batches of {BATCH}": partial(_rest, BATCH, CHANNELS),
        f"gRPC, batches of {BATCH}": partial(_grpc, _batches, CHANNELS),
        f"gRPC, streams, {BATCH} items a message": partial(_grpc, partial(_stream, BATCH), CHANNELS),
    }
    seen: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    with running(in_rust(), WORKERS, 0, stands=_with_grpc) as stack:
        first = 0
        for n in range(ROUNDS + 1):
            for way, submit in ways.items():
                before_s = stack.cpu_s()
                seconds = submit(stack, first, NOTIFICATIONS)
                first += NOTIFICATIONS
                if n:  # the first warms up
                    seen[way].append((NOTIFICATIONS / seconds, (stack.cpu_s() - before_s) / NOTIFICATIONS * 1e6))
    medians = {way: [statistics.median(each) for each in zip(*rounds, strict=True)] for way, rounds in seen.items()}
    rest: Sequence[float] = ()
    rows: list[Row] = []
    for way, (per_s, own_us) in medians.items():
        rest = (per_s, own_us) if way.startswith("REST") else rest
        rows.append(row("grpc", f"{way}: accepted a second", per_s, "1/s", f"REST {rest[0]:,.0f}", per_s / rest[0]))
        what = f"{way}: Waypost's CPU a notification"
        rows.append(row("grpc", what, own_us, "µs", f"REST {rest[1]:.1f}", own_us / rest[1]))
    return rows


def _with_grpc(folder: Path, exits: ExitStack) -> Base:
    base = embedded(folder, exits)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    settings = base.settings | {"grpc": {"listen": listen}}
    return replace(base, settings=settings, servers=dict(base.servers) | {"grpc": listen})


def _rest(batch: int, connections: int, stack: BenchStack, first: int, count: int) -> float:
    fields = f'"scheduled_at":"{_tomorrow().isoformat(timespec="seconds")}"'
    wishes: dict[str, Any] = {"batch": batch, "connections": connections, "first": first, "count": count}
    return float(stack.load(fields=fields, **wishes).result()["seconds"])


def _grpc(call: Call, at_once: int, stack: BenchStack, first: int, count: int) -> float:
    return asyncio.run(_called(call, at_once, stack, first, count))


async def _called(call: Call, at_once: int, stack: BenchStack, first: int, count: int) -> float:
    """Seconds from the first call to the last answer, connections made before."""
    target = stack.base.servers["grpc"]
    own = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(target, own) for _ in range(CHANNELS)]
    await asyncio.gather(*(channel.channel_ready() for channel in channels))
    stubs = [partial(_with_key, NotificationsStub(channel), stack.key) for channel in channels]
    each = count // at_once
    began_s = time.perf_counter()
    shares = [
        range(first + n * each, first + (n + 1) * each if n < at_once - 1 else first + count) for n in range(at_once)
    ]
    await asyncio.gather(*(call(stubs[n % CHANNELS], share) for n, share in enumerate(shares)))
    seconds = time.perf_counter() - began_s
    await asyncio.gather(*(channel.close() for channel in channels))
    return seconds


def _with_key(stub: Any, key: str, method: str, *message: Any) -> Any:
    return getattr(stub, method)(*message, metadata=[("authorization", f"Bearer {key}")])


async def _unary(stub: Any, share: range) -> None:
    for n in share:
        await stub("Submit", _wanted(n))


async def _batches(stub: Any, share: range) -> None:
    for place in range(share.start, share.stop, BATCH):
        wanted = [_wanted(n) for n in range(place, min(place + BATCH, share.stop))]
        answer = await stub("SubmitBatch", pb.SubmitBatchRequest(notifications=wanted))
        assert not answer.refused


async def _stream(many: int, stub: Any, share: range) -> None:
    """Write ahead, as far as a caller may without reading; every acknowledgement is awaited."""
    stream = stub("SubmitStream")
    written = asyncio.Semaphore(AHEAD)

    async def write() -> None:
        for place in range(share.start, share.stop, many):
            await written.acquire()
            numbers = range(place, min(place + many, share.stop))
            items = [pb.StreamItem(sequence=n, notification=_wanted(n)) for n in numbers]
            await stream.write(pb.SubmitStreamRequest(items=items))
        await stream.done_writing()

    writing = asyncio.create_task(write())
    known = 0
    while (message := await stream.read()) is not grpc.aio.EOF:
        for each in message.acknowledgements:
            assert each.HasField("notification"), each.error
            known += 1
            if known % many == 0:
                written.release()
    await writing
    assert known == len(share)


def _wanted(n: int) -> pb.Submission:
    wanted = pb.Submission(user_id=f"user-{n % 1_000}", title="Your parcel is here", body=f"Parcel {n} is at the door.")
    wanted.scheduled_at.FromDatetime(_tomorrow())
    return wanted


def _tomorrow() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)
