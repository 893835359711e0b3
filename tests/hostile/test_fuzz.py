"""The hostile corpus mutated, through every door: no request, however formed, is a surprise.

`make fuzz` brings other mutants each time, for as long as it is told, and prints the seed that repeats them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.adapters.grpc.service import reason, served, shown, status_in
from tests.adapters.rest.test_wire import listening
from tests.contract.sources import SourceUnderTest, kafka_source_under_test, redis_source_under_test
from tests.hostile.behind import behind
from tests.hostile.corpus import cases, encoded
from tests.hostile.doors import JSON_TYPE, SHAPES, SUBMIT, message_of
from tests.hostile.mutations import mutated
from tests.hostile.sources import reading
from tests.tables import AddRow
from waypost.entrypoints.rest.settings import RestSettings
from waypost.telemetry import Event
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio

SECONDS = float(os.environ.get("WAYPOST_FUZZ_SECONDS", "0"))
"""For each door; 0 is one round."""
SEED = int(os.environ.get("WAYPOST_FUZZ_SEED", "1"))
ROUND = 100
BODIES = [case.body for case in cases()]


def rounds(table: AddRow, door: str, bodies: list[bytes] = BODIES) -> Iterator[list[bytes]]:
    """Mutants, until the time is up; each mutant of a round is another."""
    rng, ends_s, count = random.Random(SEED), time.monotonic() + SECONDS, 0
    while True:
        some = list(dict.fromkeys(mutated(rng, bodies, ROUND)))
        count += len(some)
        yield some
        if time.monotonic() >= ends_s:
            table("mutants", door=door, seed=SEED, brought=count)
            return


@pytest.mark.parametrize("name", SHAPES)
async def test_rest(name: str, tmp_path: Path, table: AddRow) -> None:
    """As bodies."""
    path, shape = SHAPES[name]
    async with behind(tmp_path) as service, service.client() as client:
        for some in rounds(table, name):
            asked = (client.post(path, content=shape.within(body), headers=JSON_TYPE) for body in some)
            for body, answer in zip(some, await asyncio.gather(*asked), strict=True):
                assert answer.status_code < 500, body
            assert service.log_faults() == []


async def test_the_bytes_of_requests(table: AddRow) -> None:
    """Heads and framing, too: an answer or the end of the connection, and the server goes on."""
    async with listening(RestSettings(head_timeout_s=0.2, body_timeout_s=0.2, linger_s=0.01)) as server:
        json = "content-type: application/json"
        requests = [b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n"]
        for body in BODIES[::10]:
            requests.append(server.head("/v1/notifications", json, f"content-length: {len(body)}") + b"\r\n" + body)
            chunked = server.head("/v1/notifications", json, "transfer-encoding: chunked")
            requests.append(chunked + b"\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        for some in rounds(table, "the bytes of HTTP", requests):
            for start in range(0, len(some), 50):
                answers = await asyncio.gather(*(_said(server.port, each) for each in some[start : start + 50]))
                assert not [each for each in answers if each.startswith(b"HTTP/1.1 5")]
            assert Event.REQUEST_FAILED not in [event for event, _ in server.service.telemetry.events]


async def _said(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with contextlib.suppress(OSError):  # the other side has had enough
            writer.write(request)
            writer.write_eof()
            async with asyncio.timeout(60):
                return await reader.read(100)
        return b""
    finally:
        writer.close()


async def test_grpc(tmp_path: Path, table: AddRow) -> None:
    """As messages that say the same, and as messages whose bytes are mutated."""
    messages = [made.SerializeToString() for body in BODIES if isinstance(made := message_of(body), pb.Submission)]
    async with behind(tmp_path) as service, served(service=service) as door:
        call = door.channel.unary_unary(SUBMIT)
        for some in rounds(table, "gRPC", messages):
            for body in some:
                assert await _code(call(body, metadata=door.key)) != "internal", body
            assert service.log_faults() == []


async def _code(call: Any) -> str | None:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return reason(status_in(error))
    return None


async def test_the_bytes_of_calls(table: AddRow) -> None:
    """Frames and header blocks, too: whatever comes of them, the next call is answered."""
    recorded = await _recorded()
    async with served() as door:
        for some in rounds(table, "the bytes of HTTP/2", [recorded]):
            for start in range(0, len(some), 50):
                await asyncio.gather(*(_said(door.server.port, each) for each in some[start : start + 50]))
            assert (await door.stub.Submit(shown(), metadata=door.key)).id
            assert Event.REQUEST_FAILED not in [event for event, _ in door.service.telemetry.events]


async def _recorded() -> bytes:
    """What a client says to a server that does not answer."""
    said = bytearray()
    is_enough = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0\0\0\x04\0\0\0\0\0" + b"\0\0\0\x04\x01\0\0\0\0")  # SETTINGS, and the acknowledgement of theirs
        while SUBMIT.encode() not in said or b"Hello" not in said:
            said.extend(await reader.read(65_536))
        is_enough.set()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    channel: Any = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    async with channel:
        call = channel.unary_unary(SUBMIT)(shown().SerializeToString())
        await is_enough.wait()
        call.cancel()
    server.close()
    return bytes(said)


@contextlib.asynccontextmanager
async def _source(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[SourceUnderTest]:
    if kind == "Redis":
        async with redis_source_under_test(request.getfixturevalue("redis_url")) as source:
            yield source
    else:
        given = [request.getfixturevalue(name) for name in ("kafka_bootstrap", "kafka_prefix")]
        async with kafka_source_under_test(*given) as source:
            yield source


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["Redis", "Kafka"])
async def test_streams(kind: str, tmp_path: Path, table: AddRow, request: pytest.FixtureRequest) -> None:
    """Each is accepted, said before, or a dead letter with a code that was foreseen; none is in the way of another."""
    async with behind(tmp_path) as service, _source(kind, request) as source:
        async with reading(service, source.reader()) as read:
            brought = 0
            for some in rounds(table, kind, [*BODIES, *_jobs()]):
                await source.write(*some)
                brought += len(some)
                await read.all_of(brought)
            assert "internal" not in {each.code for each in read.buried}
        assert service.log_faults() == []


def _jobs() -> list[bytes]:
    """As the notifications service has them."""
    renamed = [body.replace(b'"user_id"', b'"userId"') for body in BODIES[::3]]
    return [*renamed, encoded({"userId": 1, "badge": "3", "data": '{"a": 1}'})]
