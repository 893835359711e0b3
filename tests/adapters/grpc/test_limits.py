"""Limits over gRPC: RESOURCE_EXHAUSTED, with when to come again."""

from __future__ import annotations

from typing import Any

import grpc
import msgspec
import pytest
from google.rpc import error_details_pb2

from tests.adapters.grpc.service import Door, details_of, reason, served, shown, status_in
from tests.adapters.rest.service import DEMO, Service
from tests.shows import shows
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain.limits import FixedWindow
from waypost.domain.time import MINUTE_MS
from waypost.entrypoints.limits import Bounds, EntrypointLimits, LimitedRoute
from waypost.ports.pressure import Pressure
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio


async def limited(**bounds: Any) -> Service:
    """What is behind the door, with these limits."""
    service = Service()
    await service.add_keys()
    limits = EntrypointLimits(Bounds(**bounds), MemoryLimiter(service.clock), service.clock, service.telemetry)
    service.api = msgspec.structs.replace(service.api, limits=limits)
    return service


async def refused(door: Door, metadata: Any = None) -> grpc.aio.AioRpcError:
    """What one more call is told."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await door.stub.Submit(shown(body="more"), metadata=metadata or door.key)
    return error.value


@shows("S1-23")
async def test_a_caller_over_its_limit_is_told_when_to_come_again() -> None:
    async with served(service=await limited(caller=FixedWindow(4, MINUTE_MS))) as door:
        batch = pb.SubmitBatchRequest(notifications=[shown(body=str(n)) for n in range(3)])
        assert (await door.stub.SubmitBatch(batch, metadata=door.key)).accepted == 3
        await door.stub.Submit(shown(body="one"), metadata=door.key)
        error = await refused(door)
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert reason(status_in(error)) == "rate_limited"
        retry = details_of(status_in(error))["RetryInfo"]
        assert isinstance(retry, error_details_pb2.RetryInfo) and 0 < retry.retry_delay.seconds <= 60


async def test_each_item_of_a_stream_counts() -> None:
    async with served(service=await limited(caller=FixedWindow(3, MINUTE_MS))) as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        acknowledged: list[pb.Acknowledgement] = []
        for n in range(3):
            item = pb.StreamItem(sequence=n, notification=shown(body=str(n)))
            await stream.write(pb.SubmitStreamRequest(items=[item]))
            acknowledged += (await stream.read()).acknowledgements
        await stream.done_writing()
        assert [each.HasField("notification") for each in acknowledged] == [True, True, False]
        assert reason(acknowledged[2].error) == "rate_limited"


async def test_what_waits_in_a_stream_is_taken_in_parts_that_the_limit_lets_in() -> None:
    """Written ahead of the acknowledgements, more than the limit ever lets in at once."""
    limits = {"caller": FixedWindow(20, MINUTE_MS), "apps": {DEMO: FixedWindow(4, MINUTE_MS)}}
    async with served(service=await limited(**limits)) as door:
        stream = door.stub.SubmitStream(metadata=door.key)
        items = [pb.StreamItem(sequence=n, notification=shown(body=str(n))) for n in range(11)]
        await stream.write(pb.SubmitStreamRequest(items=items[:1]))
        acknowledged = list((await stream.read()).acknowledgements)
        door.service.clock.advance(MINUTE_MS)
        await stream.write(pb.SubmitStreamRequest(items=items[1:]))
        await stream.done_writing()
        while (response := await stream.read()) is not grpc.aio.EOF:
            acknowledged += response.acknowledgements
        assert [each.sequence for each in acknowledged] == list(range(11))
        assert [each.HasField("notification") for each in acknowledged] == [True] * 5 + [False] * 6
        assert {reason(each.error) for each in acknowledged[5:]} == {"rate_limited"}


async def test_a_method_can_have_a_limit_and_wrong_keys_bar_the_address() -> None:
    service = await limited(endpoints=[LimitedRoute("gRPC Submit", FixedWindow(1, MINUTE_MS))])
    async with served(service=service) as door:
        await door.stub.Submit(shown(), metadata=door.key)
        assert (await refused(door)).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    async with served(service=await limited(failures=FixedWindow(1, MINUTE_MS))) as door:
        wrong = [("authorization", "Bearer wp_wrong")]
        codes = [(await refused(door, wrong)).code().name for _ in range(3)]
        assert codes == ["UNAUTHENTICATED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED"]


async def test_overload_is_refused_before_the_message_is_read() -> None:
    """As by REST, and with when to come again."""
    service = Service()
    await service.add_keys()
    intake = msgspec.structs.replace(service.api.intake, pressure=lambda: Pressure(0.0, 1.0))
    service.api = msgspec.structs.replace(service.api, intake=intake)
    async with served(service=service) as door:
        error = await refused(door)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert reason(status_in(error)) == "storage_busy"
        retry = details_of(status_in(error))["RetryInfo"]
        assert isinstance(retry, error_details_pb2.RetryInfo) and 1 <= retry.retry_delay.seconds <= 4
