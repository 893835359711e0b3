"""The spans of what one lane routes and sends, of those notifications whose acceptance is traced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.delivery import Delivery
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Lane
from waypost.domain.outcome import Outcome, Taken, outcome_name
from waypost.pipeline.route import Plan
from waypost.ports.sender import Report
from waypost.ports.work import WorkItem
from waypost.telemetry.tracing import Span, Step, Trace, Tracing


class Routed(Struct, frozen=True):
    """The span of the routing of one notification, and where that was accepted."""

    accepted: Trace
    span: Span


Routes = Mapping[NotificationId, Routed]
NOTHING: Final[Routes] = {}


class LaneSpans:
    """The recorder of one lane's spans."""

    def __init__(self, lane: Lane, tracing: Tracing | None) -> None:
        self._lane = lane
        self._tracing = tracing

    def routing(self, items: Iterable[WorkItem]) -> Routes:
        """Begin a span for each of *items* that is traced."""
        if self._tracing is None:
            return NOTHING
        routes: dict[NotificationId, Routed] = {}
        for notification in (each.notification for each in items):
            if (accepted := notification.content.trace) is not None:
                id_, lane = format_id(notification.id), self._lane.value
                span = self._tracing.begin(Step.ROUTE, accepted, app=notification.app, lane=lane, notification_id=id_)
                if span is not None:
                    routes[notification.id] = Routed(accepted, span)
        return routes

    def routed(self, routes: Routes, plans: Iterable[Plan]) -> None:
        """End the spans: these are the plans."""
        if not routes:
            return
        for plan in plans:
            if (route := routes.get(plan.item.notification.id)) is not None:
                verdict = {} if plan.verdict is None else {"status": plan.verdict.value}
                route.span.end(deliveries=len(plan.deliveries), decided=len(plan.changes), **verdict)

    def sending(self, routes: Routes, batch: Sequence[Delivery], report: Report) -> Report:
        """Begin the spans of a batch that is handed to a sender; what is returned ends them, and reports."""
        traced = [(each, routes[each.id]) for each in batch if each.id in routes] if routes else ()
        if not traced or self._tracing is None:
            return report
        return _Sending(self._tracing, self._lane, traced, len(batch), report).report


class _Sending:
    """A batch at a provider: a span for each traced delivery, in its trace, and one for the batch, linked to these."""

    def __init__(
        self, tracing: Tracing, lane: Lane, traced: Sequence[tuple[Delivery, Routed]], count: int, report: Report
    ) -> None:
        self._report = report
        self._taken = 0
        credential = traced[0][0].credential
        named = {"app": credential.app, "lane": lane.value, "provider": credential.slot}
        links = list(dict.fromkeys(route.accepted for _, route in traced))
        self._batch = tracing.begin(Step.SEND, None, links=links, count=count, traced=len(traced), **named)
        of_batch = () if self._batch is None else (self._batch.trace,)
        self._open: dict[tuple[NotificationId, int], Span] = {}
        for each, route in traced:
            id_ = format_id(each.id)
            tried = {"target": each.n, "attempt": each.attempt}
            span = tracing.begin(Step.DELIVER, route.span.trace, links=of_batch, notification_id=id_, **named, **tried)
            if span is not None:
                self._open[each.id, each.n] = span

    def report(self, delivery: Delivery, outcome: Outcome) -> None:
        """End the span of a delivery by the provider's answer, and with the last one that of the batch; report it."""
        span = self._open.pop((delivery.id, delivery.n), None)
        if span is not None:
            self._taken += isinstance(outcome, Taken)
            span.end(None if isinstance(outcome, Taken) else outcome.code, outcome=outcome_name(type(outcome)))
            if not self._open and self._batch is not None:
                self._batch.end(taken=self._taken)
        self._report(delivery, outcome)
