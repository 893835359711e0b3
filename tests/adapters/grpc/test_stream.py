"""Streams: each item acknowledged in order, bounded in what they hold, ended with a word."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from tests.adapters.grpc.service import DEFAULTS, Door, reason, served, shown, status_in, violations
from waypost.domain.errors import StorageFull
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.telemetry import Metric
from waypost.v1 import notifications_pb2 as pb
from waypost.v1.notifications_pb2_grpc import NotificationsStub

pytestmark = pytest.mark.asyncio


def request(*numbered: tuple[int, pb.Submission]) -> pb.SubmitStreamRequest:
    """A message of a stream."""
    items = [pb.StreamItem(sequence=sequence, notification=wanted) for sequence, wanted in numbered]
    return pb.SubmitStreamRequest(items=items)


async def acknowledged(stream: AsyncIterator[pb.SubmitStreamResponse], count: int) -> list[pb.Acknowledgement]:
    """The next *count* acknowledgements, or those until the end."""
    found: list[pb.Acknowledgement] = []
    async for message in stream:
        found += message.acknowledgements
        if len(found) >= count:
            break
    return found


async def ended(stream: Any) -> grpc.aio.AioRpcError:
    """How a stream ended that did not end well."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in stream:
            pass
    return caught.value


async def test_each_item_is_acknowledged_in_order_by_the_callers_own_number() -> None:
    """Accepted, repeated and refused: the stream goes on; several a message or one."""
    async with served() as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        await stream.write(request((7, shown("a")), (3, shown("a")), (1 << 63, shown("b", ttl=-1))))
        await stream.write(request((0, shown("c"))))
        await stream.done_writing()
        found = await acknowledged(stream, 5)
        assert [each.sequence for each in found] == [7, 3, 1 << 63, 0]
        assert found[1].notification.id == found[0].notification.id
        assert violations(found[2].error) == [("ttl", "must be a whole number >= 0")]
        assert await stream.code() is grpc.StatusCode.OK
        assert len(door.service.store.rows) == 3  # the repetition leaves a record


class Held:
    """A store that takes nothing until it is let."""

    def __init__(self, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = asyncio.Event()
        self.let = asyncio.Event()
        self.done = asyncio.Event()
        self.sizes: list[int] = []
        self._accept = door.service.work.accept
        monkeypatch.setattr(door.service.work, "accept", self.accept)

    async def accept(self, batch: Any) -> Any:
        """See Work."""
        self.sizes.append(len(batch))
        self.asked.set()
        await self.let.wait()
        answers = await self._accept(batch)
        self.done.set()
        return answers


async def test_a_stream_is_read_no_further_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store takes nothing, what a caller goes on writing stays in the connection, and is not lost."""
    async with served(GrpcSettings(listen=DEFAULTS.listen, stream_in_flight=4)) as door:
        held = Held(door, monkeypatch)
        stream = door.stub.SubmitStream(metadata=door.key)
        for n in range(50):
            await stream.write(request((n, shown(str(n)))))
        await stream.done_writing()
        await held.asked.wait()
        await door.health.Check(health_pb2.HealthCheckRequest())  # behind all of it
        held.let.set()
        found = await acknowledged(stream, 50)
        assert [each.sequence for each in found] == list(range(50))
        assert max(held.sizes) <= 4


async def test_what_refuses_all_for_now_is_each_items_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream goes on, and the same items may come again."""

    async def full(_: object) -> None:
        raise StorageFull("no room", retry_after_s=30)

    async with served() as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        with monkeypatch.context() as broken:
            broken.setattr(door.service.work, "accept", full)
            await stream.write(request((1, shown("a")), (2, pb.Submission())))
            first, second = await acknowledged(stream, 2)
            assert [reason(each.error) for each in (first, second)] == ["storage_full"] * 2
        await stream.write(request((3, shown("a"))))
        (third,) = await acknowledged(stream, 1)
        assert third.notification.id
        stream.cancel()


async def test_a_draining_server_acknowledges_what_it_has_read_and_ends_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """UNAVAILABLE, shutting_down: the caller goes on elsewhere with what has no acknowledgement."""
    async with served() as door:
        held = Held(door, monkeypatch)
        stream = door.stub.SubmitStream(metadata=door.key)
        await stream.write(request((1, shown("a"))))
        await held.asked.wait()
        stopping = asyncio.create_task(door.server.stop())
        held.let.set()
        (found,) = await acknowledged(stream, 1)
        assert found.notification.id
        error = await ended(stream)
        assert (error.code(), reason(status_in(error))) == (grpc.StatusCode.UNAVAILABLE, "shutting_down")
        await stopping


async def test_a_busy_stream_does_not_hold_up_a_draining_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much comes, reading ends. The metric says how: a client that is writing may miss the status."""
    async with served() as door:
        accept = door.service.work.accept

        async def slowly(batch: Any) -> Any:
            await asyncio.sleep(0.01)  # so that something more has always come
            return await accept(batch)

        monkeypatch.setattr(door.service.work, "accept", slowly)
        stream = door.stub.SubmitStream(metadata=door.key)
        known: list[int] = []

        async def write() -> None:
            for n in range(100_000):
                await stream.write(request((n, shown(str(n)))))

        async def read() -> None:
            async for message in stream:
                known.extend(each.sequence for each in message.acknowledgements)
                begun.set()

        begun = asyncio.Event()
        calling = asyncio.gather(write(), read(), return_exceptions=True)
        await begun.wait()
        await door.server.stop()
        await calling
        counted = [labels["status"] for metric, labels in door.service.telemetry.counts if metric is Metric.REQUESTS]
        assert counted == ["UNAVAILABLE"]
        assert known == list(range(len(known)))
        assert len(known) <= len(door.service.store.rows)


async def test_callers_that_vanish_at_any_moment_are_no_surprise(caplog: pytest.LogCaptureFixture) -> None:
    """Neither ours nor gRPC's log has a word of them."""
    rng = random.Random(7)
    async with served() as door:

        async def vanish(caller: int) -> None:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{door.server.port}") as channel:
                stub: Any = NotificationsStub(channel)
                stream = stub.SubmitStream(metadata=door.key)
                for n in range(rng.randrange(6)):
                    await stream.write(request(*((k, shown(f"{caller}-{n}-{k}")) for k in range(30))))
                for _ in range(rng.randrange(2)):
                    await asyncio.wait({asyncio.ensure_future(stream.read())}, timeout=rng.random() / 50)
                stream.cancel()

        await asyncio.gather(*(vanish(caller) for caller in range(40)), return_exceptions=True)
        assert (await door.stub.Submit(shown("still"), metadata=door.key)).id
        await door.server.stop()
        assert not door.service.telemetry.events
    assert [record.getMessage() for record in caplog.records if record.name.startswith("grpc")] == []


async def test_an_idle_stream_does_not_hold_up_a_draining_server() -> None:
    """It has nothing to wait for."""
    async with served() as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        await stream.write(request((1, shown("a"))))
        await acknowledged(stream, 1)
        stopping = asyncio.create_task(door.server.stop())
        assert reason(status_in(await ended(stream))) == "shutting_down"
        await stopping


async def test_what_a_caller_that_went_away_had_sent_is_accepted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was begun is finished: its workers are told, its metrics count."""
    async with served() as door:
        held = Held(door, monkeypatch)
        stream = door.stub.SubmitStream(metadata=door.key)
        await stream.write(request((1, shown("a"))))
        await held.asked.wait()
        stream.cancel()
        held.let.set()
        await held.done.wait()
        assert len(door.service.store.rows) == 1
        assert not door.service.telemetry.events


@pytest.mark.parametrize("count", [1_001])
async def test_a_message_of_too_many_items_ends_the_stream(count: int) -> None:
    """What came before it is acknowledged first."""
    async with served() as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        await stream.write(request((1, shown("a"))))
        await stream.write(request(*((n, shown(str(n))) for n in range(count))))
        assert len(await acknowledged(stream, 1)) == 1
        assert violations(status_in(await ended(stream)))[0][0] == "items"
