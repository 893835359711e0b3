"""Calls that mean no good: each gets a clear status, none gets through, none is a surprise."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc
import hpack
import pytest
from hyperframe.frame import Frame, GoAwayFrame, HeadersFrame, SettingsFrame

from tests.adapters.grpc.service import DEFAULTS, Door, reason, served, shown, status_in
from waypost.domain import api_key
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.telemetry import Event, Metric
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio

SUBMIT, STREAM = "/waypost.v1.Notifications/Submit", "/waypost.v1.Notifications/SubmitStream"


async def refused(door: Door, body: bytes, metadata: Any = None, **options: Any) -> grpc.aio.AioRpcError:
    """How raw bytes are refused; nothing came of them and nothing was logged."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await door.channel.unary_unary(SUBMIT)(body, metadata=door.key if metadata is None else metadata, **options)
    assert not door.service.store.rows
    assert not door.service.telemetry.events
    return caught.value


@pytest.mark.parametrize("body", [b"\xff" * 9, b"\x0a\x05ab", b"\x32\x02\xff\xfe", b"\x4a" + b"\x80" * 20])
async def test_bytes_that_are_no_message_are_invalid(body: bytes) -> None:
    """Cut off, not UTF-8, not a message at all: the answer names the type, never the bytes."""
    async with served() as door:
        error = await refused(door, body)
        assert (error.code(), reason(status_in(error))) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_request")
        assert error.details() == "not a message of the type waypost.v1.Submission"


async def test_a_message_that_nests_without_end_is_invalid() -> None:
    """The parser stops before the stack does; what it lets through, the depth limit of data does not."""
    deep = pb.Submission(user_id="u", title="t")
    inner = deep.data
    for _ in range(20):
        inner = inner.fields["a"].struct_value
    inner.fields["a"].bool_value = True
    deeper = b""
    for _ in range(3_000):
        deeper = b"\x2a" + _length(deeper) + deeper
    async with served() as door:
        assert "nested deeper than 16 levels" in str((await refused(door, deep.SerializeToString())).details())
        error = await refused(door, b"\x4a" + _length(deeper) + deeper)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT


def _length(body: bytes) -> bytes:
    """A varint."""
    n, made = len(body), bytearray()
    while n > 0x7F:
        made.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*made, n])


async def test_gRPC_itself_refuses_what_is_too_large_and_what_is_compressed() -> None:  # noqa: N802 - its name
    """A message, its metadata; a small message that would become a large one."""
    limits = GrpcSettings(listen=DEFAULTS.listen, message_limit_bytes=64 * 1024, metadata_limit_bytes=4 * 1024)
    async with served(limits) as door:
        too_large = await refused(door, b"\0" * (65 * 1024))
        assert too_large.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        flood = await refused(door, b"", [*door.key, *((f"x-{n}", "y" * 100) for n in range(100))])
        assert flood.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        bomb = shown(body="\0" * 60_000).SerializeToString()
        compressed = await refused(door, bomb, compression=grpc.Compression.Gzip)
        assert compressed.code() is grpc.StatusCode.UNIMPLEMENTED
        assert (await door.stub.Submit(shown(), metadata=door.key)).id


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Bearer wp_nonsense")],
        [("authorization", "Basic dXNlcjpwYXNz")],
        [("x-api-key", api_key.make(bytes(api_key.RANDOM_BYTES)).text)],
    ],
)
@pytest.mark.parametrize("method", [SUBMIT, STREAM])
async def test_a_missing_or_wrong_key_is_unauthenticated(metadata: Any, method: str) -> None:
    """Before anything of the message is looked at."""
    async with served() as door:
        error = await refused(door, b"\xff", metadata)
        assert (error.code(), reason(status_in(error))) == (grpc.StatusCode.UNAUTHENTICATED, "unauthenticated")
        stream = door.channel.stream_stream(method)(metadata=metadata)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await anext(aiter(stream))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_key_may_come_as_x_api_key() -> None:
    """As at REST."""
    async with served() as door:
        assert (await door.stub.Submit(shown(), metadata=[("x-api-key", door.service.made.text)])).id


async def test_a_message_that_does_not_come_is_deadline_exceeded() -> None:
    """A slow caller does not hold a call for ever; others are answered meanwhile."""
    async with served(GrpcSettings(listen=DEFAULTS.listen, message_timeout_s=0.05)) as door:
        slow = door.channel.stream_unary(SUBMIT)(metadata=door.key)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await slow
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert reason(status_in(caught.value)) == "request_timeout"


async def test_a_call_without_a_message_is_invalid() -> None:
    """Half closed at once."""
    async with served() as door:
        empty = door.channel.stream_unary(SUBMIT)(metadata=door.key)
        await empty.done_writing()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await empty
        assert reason(status_in(caught.value)) == "invalid_request"


async def test_past_the_limit_of_calls_further_ones_are_unavailable() -> None:
    """Those in hand go on."""
    async with served(GrpcSettings(listen=DEFAULTS.listen, calls_limit=1)) as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        await stream.write(pb.SubmitStreamRequest(items=[pb.StreamItem(sequence=1, notification=shown("first"))]))
        await anext(aiter(stream))
        other: Any = grpc.aio.insecure_channel(f"127.0.0.1:{door.server.port}", [("grpc.use_local_subchannel_pool", 1)])
        async with other:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await other.unary_unary(SUBMIT)(shown().SerializeToString(), metadata=door.key)
        assert reason(status_in(caught.value)) == "backlog_full"
        await stream.write(pb.SubmitStreamRequest(items=[pb.StreamItem(sequence=2, notification=shown("second"))]))
        await anext(aiter(stream))
        stream.cancel()


async def test_connections_that_say_nothing_do_not_hold_up_others() -> None:
    """Nor those that begin to say something: gRPC gives them 10 s."""
    async with served() as door, contextlib.AsyncExitStack() as held:
        for n in range(300):
            _, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
            held.callback(writer.close)
            if n % 2:
                writer.write(b"PRI * HTTP/2.0\r\n\r\nS")
        assert (await door.stub.Submit(shown(), metadata=door.key)).id


async def test_a_method_that_is_not_there_is_unimplemented() -> None:
    """With or without a key."""
    async with served() as door:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await door.channel.unary_unary("/waypost.v1.Notifications/Nothing")(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("path", [b"/waypost.v1.Notifications/\xff", b"/\xc3", b"", b"/" * 1_000, b"*"])
async def test_no_name_of_a_method_ends_the_server(path: bytes) -> None:
    """Nobody can send it by a client: it is no text. Others go on, over the same server."""
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x")]
    fields += [(b"content-type", b"application/grpc"), (b"te", b"trailers")]
    head = HeadersFrame(1, hpack.Encoder().encode(fields), flags=["END_HEADERS", "END_STREAM"])
    async with served() as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0).serialize() + head.serialize())
        is_answered = asyncio.create_task(_answered(reader))
        for n in range(3):
            assert (await door.stub.Submit(shown(f"user-{n}"), metadata=door.key, wait_for_ready=True, timeout=60)).id
        await is_answered
        assert (await door.stub.Submit(shown("last"), metadata=door.key, timeout=60)).id
        writer.close()


async def _answered(reader: asyncio.StreamReader) -> None:
    """Read until something is said about the stream, or the connection ends."""
    async with asyncio.timeout(60):
        while len(head := await reader.read(9)) == 9:
            frame, length = Frame.parse_frame_header(memoryview(head))
            await reader.readexactly(length)
            if frame.stream_id == 1 or isinstance(frame, GoAwayFrame):
                return


async def test_an_error_nobody_foresaw_is_internal_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has where, and neither it nor the answer what was sent."""

    async def broken(_: object) -> None:
        raise RuntimeError("hush")

    async with served() as door:
        monkeypatch.setattr(door.service.work, "accept", broken)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await door.stub.Submit(shown(), metadata=door.key)
        assert (caught.value.code(), reason(status_in(caught.value))) == (grpc.StatusCode.INTERNAL, "internal")
        assert "hush" not in str(caught.value.details())
        ((event, fields),) = door.service.telemetry.events
        assert (event, fields["route"], fields["error"]) == (Event.REQUEST_FAILED, SUBMIT, "RuntimeError")
        assert "hush" not in str(fields)


async def test_every_call_is_counted_once_by_method_and_status() -> None:
    """The same metric as at REST."""
    async with served() as door:
        await door.stub.Submit(shown(), metadata=door.key)
        await refused_quietly(door)
    counted = [labels for metric, labels in door.service.telemetry.counts if metric is Metric.REQUESTS]
    assert counted == [{"route": SUBMIT, "status": "OK"}, {"route": SUBMIT, "status": "INVALID_ARGUMENT"}]


async def refused_quietly(door: Door) -> None:
    """A call that is refused."""
    with pytest.raises(grpc.aio.AioRpcError):
        await door.stub.Submit(pb.Submission(), metadata=door.key)


INJECTIONS = ["'; DROP TABLE notifications; --", "{{7*7}}", "${jndi:ldap://x}", "\u202e", "<script>", "%s%n", "\x00"]


@pytest.mark.parametrize("text", INJECTIONS)
async def test_what_looks_like_code_is_kept_as_text(text: str) -> None:
    """Whatever it means elsewhere."""
    async with served() as door:
        made = await door.stub.Submit(shown(title=f"t {text}", body=text), metadata=door.key)
        answer = await (door.service.client()).get(f"/v1/notifications/{made.id}")
        assert answer.json()["content"]["body"] == text


async def test_a_stopped_server_leaves_no_task_behind() -> None:
    """Nor does a stream that was cut off."""
    before = asyncio.all_tasks()
    async with served() as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        await stream.write(pb.SubmitStreamRequest(items=[pb.StreamItem(sequence=1, notification=shown())]))
        await anext(aiter(stream))
    left = asyncio.all_tasks() - before
    if left:  # grpcio's own end a moment after the server
        _, left = await asyncio.wait(left, timeout=10)
    assert {task.get_name() for task in left} == set()
