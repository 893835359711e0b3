"""Which spans OpenTelemetry's SDK records, and how the recorder ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from waypost.adapters.otel.settings import TraceSettings
from waypost.adapters.otel.tracing import OtelTracing
from waypost.telemetry import Silent
from waypost.telemetry.tracing import Step, accepting

pytestmark = pytest.mark.asyncio

NOBODY = "http://127.0.0.1:9/v1/traces"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
YES, NO = f"00-{TRACE}-00f067aa0ba902b7-01", f"00-{TRACE}-00f067aa0ba902b7-00"


@pytest_asyncio.fixture
async def never() -> AsyncIterator[OtelTracing]:
    """A recorder that traces nothing of its own accord."""
    made = OtelTracing(TraceSettings(to=NOBODY, sample=0), Silent())
    yield made
    await made.close()


@pytest_asyncio.fixture
async def always() -> AsyncIterator[OtelTracing]:
    """A recorder that traces all."""
    made = OtelTracing(TraceSettings(to=NOBODY, sample=1), Silent())
    yield made
    await made.close()


async def test_a_parent_decides_and_without_one_the_share(never: OtelTracing, always: OtelTracing) -> None:
    for tracing in (never, always):
        span = tracing.begin(Step.ACCEPT, YES)
        assert span is not None
        assert span.trace.startswith(f"00-{TRACE}-")
        assert span.trace.endswith("-01")
        assert tracing.begin(Step.ACCEPT, NO) is None
    assert never.begin(Step.ACCEPT, None) is None
    assert always.begin(Step.ACCEPT, None) is not None


@pytest.mark.parametrize("nonsense", ["", "00", "00-zz-xx-01", f"00-{'0' * 32}-00f067aa0ba902b7-01", "\ud800\x00" * 99])
async def test_a_place_that_is_none_counts_as_left_out(nonsense: str, never: OtelTracing, always: OtelTracing) -> None:
    assert never.begin(Step.ACCEPT, nonsense) is None
    span = always.begin(Step.ACCEPT, nonsense)
    assert span is not None
    assert TRACE not in span.trace


async def test_what_links_to_something_sampled_is_sampled(never: OtelTracing) -> None:
    span = never.begin(Step.SEND, None, links=[YES])
    assert span is not None
    assert TRACE not in span.trace


async def test_acceptances_from_several_places_are_spans_in_their_traces(never: OtelTracing) -> None:
    """What came from nowhere, and what its caller does not trace, has none."""
    with accepting(never, "demo", [YES, None, NO, YES]) as kept:
        assert [each is not None for each in kept] == [True, False, False, True]
        assert kept[0] == kept[3] != YES
