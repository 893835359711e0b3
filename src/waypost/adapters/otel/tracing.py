"""The recorder of spans: OpenTelemetry's SDK, which exports them by OTLP over HTTP in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from waypost import __version__
from waypost.adapters.otel.settings import TraceSettings
from waypost.telemetry import Metric, Telemetry
from waypost.telemetry.tracing import TRACEPARENT, Span, Step, Trace

QUEUE: Final = 8_192
"""The most spans that wait for the collector; beyond it the oldest are lost."""
EXPORT_EVERY_MS: Final = 1_000
EXPORT_TIMEOUT_S: Final = 2.0
LAST_SPANS_S: Final = 1.0
"""Seconds for the last spans to be exported when the process ends."""

_KIND: Final = {
    Step.ACCEPT: SpanKind.SERVER,
    Step.ROUTE: SpanKind.CONSUMER,
    Step.SEND: SpanKind.INTERNAL,
    Step.DELIVER: SpanKind.CLIENT,
}
_PREFIX: Final = "waypost."
_contexts = TraceContextTextMapPropagator()


class OtelTracing:
    """A recorder of spans for a collector (fulfils telemetry.tracing.Tracing); one that is away costs spans alone."""

    def __init__(self, settings: TraceSettings, telemetry: Telemetry) -> None:
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # plain text among our JSON
        self._exporter = OTLPSpanExporter(settings.to, timeout=EXPORT_TIMEOUT_S)
        self._exporting = BatchSpanProcessor(_Counting(self._exporter, telemetry), QUEUE, EXPORT_EVERY_MS)
        named = {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "waypost"), SERVICE_VERSION: __version__}
        provider = TracerProvider(ALWAYS_ON, Resource.create(named), shutdown_on_exit=False)
        provider.add_span_processor(self._exporting)
        self._tracer = provider.get_tracer("waypost", __version__)
        self._share = settings.sample
        self._telemetry = telemetry

    def begin(
        self, step: Step, after: Trace | None, /, *, links: Sequence[Trace] = (), **said: str | int
    ) -> Span | None:
        """See Tracing."""
        parent = INVALID_SPAN_CONTEXT if after is None else _context_of(after)
        if not (parent.trace_flags.sampled if parent.is_valid else links or self._by_chance()):
            return None
        span = self._tracer.start_span(
            step.value,
            set_span_in_context(NonRecordingSpan(parent), Context()),
            _KIND[step],
            {_PREFIX + name: value for name, value in said.items()},
            [Link(_context_of(each)) for each in links],
        )
        return _Recorded(span, self._telemetry)

    def _by_chance(self) -> bool:
        return random.random() < self._share  # noqa: S311 - no secret

    async def close(self) -> None:
        """Export what is left, for a moment; whatever the collector does not take by then is lost."""
        closing = asyncio.create_task(asyncio.to_thread(self._exporting.shutdown))
        _, late = await asyncio.wait([closing], timeout=LAST_SPANS_S)
        if late:
            self._exporter.shutdown()  # type: ignore[no-untyped-call] # it tries no more, so that its thread ends
        await closing


def _context_of(trace: Trace) -> SpanContext:
    return get_current_span(_contexts.extract({TRACEPARENT: trace}, Context())).get_span_context()


class _Recorded:
    """A span that is recorded (fulfils telemetry.tracing.Span)."""

    def __init__(self, span: SdkSpan, telemetry: Telemetry) -> None:
        self._span = span
        self._telemetry = telemetry

    @property
    def trace(self) -> Trace:
        """See Span."""
        at = self._span.get_span_context()
        return f"00-{at.trace_id:032x}-{at.span_id:016x}-{at.trace_flags:02x}"

    def end(self, failure: str | None = None, /, **said: str | int) -> None:
        """See Span."""
        for name, value in said.items():
            self._span.set_attribute(_PREFIX + name, value)
        if failure is not None:
            self._span.set_status(Status(StatusCode.ERROR, failure))
        self._span.end()
        self._telemetry.count(Metric.SPANS, state="ended")


class _Counting(SpanExporter):
    """An exporter that counts what the collector took."""

    def __init__(self, exporter: OTLPSpanExporter, telemetry: Telemetry) -> None:
        self._exporter = exporter
        self._telemetry = telemetry

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See SpanExporter; called in the thread that exports."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._telemetry.count(Metric.SPANS, len(spans), state="exported")
        return result

    def shutdown(self) -> None:
        """See SpanExporter."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # it has no types
