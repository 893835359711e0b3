"""Traces as a collector gets them: a served Waypost, a real OTLP receiver, and the lab's answers."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.journeys.harness import Service, running, until
from tests.journeys.load import Audience
from waypost.v1 import notifications_pb2 as pb
from waypost.v1.notifications_pb2_grpc import NotificationsStub

pytestmark = pytest.mark.asyncio

OURS = "4bf92f3577b34da6a3ce929d0e0e4736"
ASKS, LEAVES = f"00-{OURS}-00f067aa0ba902b7-01", f"00-{OURS}-00f067aa0ba902b8-00"
OF_GRPC = "00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b9-01"


class Collector:
    """A receiver of OTLP over HTTP that keeps the spans it is sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()

    async def take(self, request: web.Request) -> web.Response:
        """Take an export."""
        assert request.content_type == "application/x-protobuf"
        for each in ExportTraceServiceRequest.FromString(await request.read()).resource_spans:
            self.services |= {one.value.string_value for one in each.resource.attributes if one.key == "service.name"}
            self.spans += [span for scope in each.scope_spans for span in scope.spans]
        return web.Response()

    def of(self, trace: str, name: str) -> list[Span]:
        """The spans of a trace that have this name."""
        return [each for each in self.spans if each.trace_id.hex() == trace and each.name == name]


@asynccontextmanager
async def collecting() -> AsyncIterator[tuple[Collector, str, web.AppRunner]]:
    """A collector, its address and its server."""
    collector, app = Collector(), web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/traces", collector.take)
    server = web.AppRunner(app)
    await server.setup()
    site = web.TCPSite(server, "127.0.0.1", 0)
    await site.start()
    try:
        yield collector, f"http://127.0.0.1:{server.addresses[0][1]}/v1/traces", server
    finally:
        await server.cleanup()


async def submitted(service: Service, path: str, body: Any, trace: str) -> Any:
    """The answer to a request that comes from within *trace*."""
    headers = {"authorization": f"Bearer {service.key}", "traceparent": trace}
    async with aiohttp.request("POST", service.url + path, json=body, headers=headers) as answer:
        assert answer.status == 202
        return await answer.json()


async def ended(service: Service, ids: Sequence[str]) -> None:
    """Return when nothing of *ids* is open."""
    for id_ in ids:

        async def is_over(wanted: str = id_) -> bool:
            _, answer = await service.ask("GET", f"/v1/notifications/{wanted}")
            return answer["notification"]["status"] in ("sent", "failed", "partial")

        await until(is_over, f"the end of {id_}", 20)


def said(span: Span) -> dict[str, Any]:
    """The attributes of a span."""
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


async def test_one_trace_goes_from_the_callers_request_to_the_providers_answers(tmp_path: Path) -> None:
    """What the caller does not trace is not traced; a collector that is away costs spans alone."""
    async with collecting() as (collector, address, server):
        traces = {"to": address, "sample": 0}
        async with running(tmp_path, workers=1, traces=traces, grpc={"listen": "127.0.0.1:0"}) as service:
            audience = Audience(service)
            await audience.register(2, (("ios", "android"),))
            dead = {"where": "fcm", "match": {"token": audience.tokens["user-1"][1]}, "do": {"gone": {}}}
            await service.lab.script(dead)
            many = {"notifications": [{"user_id": f"user-{n}", "title": "Traced"} for n in range(2)]}
            answer = await submitted(service, "/v1/notifications/batch", many, ASKS)
            ids = [each["notification"]["id"] for each in answer["results"]]
            silent = await submitted(service, "/v1/notifications", {"user_id": "user-0", "title": "Untraced"}, LEAVES)
            async with grpc.aio.insecure_channel(service.grpc) as channel:
                call = NotificationsStub(channel).Submit
                asked = pb.Submission(user_id="user-0", title="By gRPC")
                metadata = (("authorization", f"Bearer {service.key}"), ("traceparent", OF_GRPC))
                by_grpc = (await call(asked, metadata=metadata)).id
            await ended(service, [*ids, silent["id"], by_grpc])

            async def exported() -> bool:
                return len(collector.of(OURS, "deliver")) == 4 and len(collector.of(OF_GRPC[3:35], "deliver")) == 2

            await until(exported, "the spans")
            _check_trace(collector, ids)
            _, shown = await service.ask("GET", f"/v1/notifications/{ids[0]}")
            assert shown["content"]["trace"].startswith(f"00-{OURS}-")
            assert silent["id"] not in {said(each).get("waypost.notification_id") for each in collector.spans}
            assert collector.services == {"waypost"}

            await server.cleanup()
            lost = await submitted(service, "/v1/notifications", {"user_id": "user-0", "title": "Nobody looks"}, ASKS)
            await ended(service, [lost["id"]])
            assert (await service.lab.arrivals(lost["id"])) != []
            async with aiohttp.request("GET", service.url + "/metrics") as metrics:
                lines = dict(line.rsplit(" ", 1) for line in (await metrics.text()).splitlines() if line[0] != "#")
            ends, took = (float(lines[f'waypost_spans_total{{state="{each}"}}']) for each in ("ended", "exported"))
            assert took == len(collector.spans) < ends
            assert service.process is not None
            service.process.send_signal(signal.SIGTERM)
            assert await service.ended() == 0
            plain = [line for line in (tmp_path / "serve.log").read_text().splitlines() if not line.startswith("{")]
            assert plain == []


def _check_trace(collector: Collector, ids: Sequence[str]) -> None:
    """Check that the trace is one tree, and that batches link to what they carry."""
    (accept,) = collector.of(OURS, "accept")
    assert accept.parent_span_id.hex() == "00f067aa0ba902b7"
    assert said(accept) == {"waypost.app": "demo", "waypost.count": 2}
    routes = collector.of(OURS, "route")
    assert sorted(said(each)["waypost.notification_id"] for each in routes) == sorted(ids)
    assert {each.parent_span_id for each in routes} == {accept.span_id}
    delivers = collector.of(OURS, "deliver")
    by_route = {each.span_id: said(each)["waypost.notification_id"] for each in routes}
    assert all(by_route[each.parent_span_id] == said(each)["waypost.notification_id"] for each in delivers)
    outcomes = sorted((said(each)["waypost.provider"], said(each)["waypost.outcome"]) for each in delivers)
    assert outcomes == [("apns", "taken"), ("apns", "taken"), ("fcm", "gone"), ("fcm", "taken")]
    (failed,) = [each for each in delivers if each.status.code == Status.STATUS_CODE_ERROR]
    assert failed.status.message == "UNREGISTERED"
    sends = {each.span_id: each for each in collector.spans if each.name == "send"}
    for each in delivers:
        (link,) = each.links
        assert accept.span_id in {one.span_id for one in sends[link.span_id].links}
        assert accept.start_time_unix_nano < each.start_time_unix_nano <= each.end_time_unix_nano
