"""Tracing: the steps of a notification's way, told to whoever records spans; where it is off, there is nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Protocol

TRACEPARENT = "traceparent"
"""The header, or field, that carries a trace context (W3C Trace Context)."""

Trace = str
"""A place in a trace, as the header ``traceparent`` says it."""


class Step(StrEnum):
    """A step that is a span; docs/telemetry.md explains each."""

    ACCEPT = "accept"
    ROUTE = "route"
    SEND = "send"
    DELIVER = "deliver"


class Span(Protocol):
    """A span that is recorded."""

    @property
    def trace(self) -> Trace:
        """The place in the trace, for what follows from this span."""
        ...

    def end(self, failure: str | None = None, /, **said: str | int) -> None:
        """End it; *failure* is the code of what went wrong."""
        ...


class Tracing(Protocol):
    """A recorder of spans; it never blocks and never raises."""

    def begin(
        self, step: Step, after: Trace | None, /, *, links: Sequence[Trace] = (), **said: str | int
    ) -> Span | None:
        """Begin a span that follows from *after*; None where it is not sampled.

        What it follows from, or links to, has decided that; without either it is left to chance.
        """
        ...


@contextmanager
def accepting(tracing: Tracing, app: str, places: Sequence[Trace | None]) -> Iterator[list[Trace | None]]:
    """Record the acceptance of submissions from *places*, a span for each place, and give where each is in its trace.

    None stands for what is not sampled.
    """
    counts: dict[Trace | None, int] = {}
    for place in places:
        counts[place] = counts.get(place, 0) + 1
    spans = {place: tracing.begin(Step.ACCEPT, place, app=app, count=n) for place, n in counts.items()}
    begun = {place: span for place, span in spans.items() if span is not None}
    failure = None
    try:
        yield [begun[each].trace if each in begun else None for each in places]
    except Exception as error:
        failure = str(getattr(error, "code", type(error).__name__))
        raise
    finally:
        for span in begun.values():
            span.end(failure)
