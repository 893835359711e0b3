"""A recorder of spans that keeps them, for tests of what is told to it."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.telemetry.tracing import Span, Step, Trace


class Kept:
    """A span that is kept (fulfils telemetry.tracing.Span)."""

    def __init__(self, step: Step, trace: Trace, after: Trace | None, links: Sequence[Trace]) -> None:
        self.step, self.trace, self.after, self.links = step, trace, after, list(links)
        self.said: dict[str, str | int] = {}
        self.failure: str | None = None
        self.is_over = False

    def end(self, failure: str | None = None, /, **said: str | int) -> None:
        """See Span."""
        assert not self.is_over, "a span ends once"
        self.is_over, self.failure = True, failure
        self.said |= said


class Recorder:
    """A recorder that samples all but what follows from *unsampled*."""

    def __init__(self, unsampled: Trace | None = None) -> None:
        self.spans: list[Kept] = []
        self._unsampled = unsampled

    def begin(
        self, step: Step, after: Trace | None, /, *, links: Sequence[Trace] = (), **said: str | int
    ) -> Span | None:
        """See Tracing."""
        if after is not None and after == self._unsampled:
            return None
        kept = Kept(step, f"{step} {len(self.spans)}", after, links)
        kept.said |= said
        self.spans.append(kept)
        return kept

    def of(self, step: Step) -> list[Kept]:
        """The spans of a step, in order; each has ended."""
        found = [each for each in self.spans if each.step is step]
        assert all(each.is_over for each in found)
        return found
