"""The route of the balance."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get
from msgspec import Meta, Struct

from waypost.domain.balance import Balance, Flow, Requests, Waiting, together
from waypost.domain.notification import Lane
from waypost.domain.time import isoformat
from waypost.entrypoints.access import READS
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, ground_of
from waypost.entrypoints.rest.views import Timestamp

DifferenceView = Annotated[int, Meta(description="0 where the line adds up; else what is missing, or too much.")]
Ended = Annotated[dict[str, int], Meta(description="How many ended, by status, of all times.")]


class RequestsView(Struct, frozen=True):
    """The line `requests = refused + duplicates + accepted`, of requests that could be read."""

    requests: int
    refused: int
    duplicates: int
    accepted: int
    difference: DifferenceView


class NotificationsView(Struct, frozen=True):
    """The line `accepted + recipients = ended + scheduled + waiting + processing`."""

    accepted: int
    recipients: Annotated[int, Meta(description="Those of bulk jobs, each from when it is stored.")]
    ended: Ended
    scheduled: int
    waiting: Annotated[int, Meta(description="None of their targets is on record, whether a worker has them or not.")]
    processing: Annotated[int, Meta(description="Some of their targets are still open.")]
    difference: DifferenceView


class DeliveriesView(Struct, frozen=True):
    """The line `targets = ended + waiting + parked + under_way`, of notifications whose targets are on record."""

    targets: int
    ended: Ended
    waiting: Annotated[int, Meta(description="Due now or later, whether a worker has them or not.")]
    parked: Annotated[int, Meta(description="Waiting for a condition, such as a breaker.")]
    under_way: Annotated[int, Meta(description="Sent at most once, and without an outcome so far.")]
    difference: DifferenceView


class BalanceView(Struct, frozen=True):
    """The three lines."""

    requests: RequestsView
    notifications: NotificationsView
    deliveries: DeliveriesView


class BalanceSheetView(Struct, frozen=True):
    """The balance of the app, and of each of its lanes."""

    as_of: Annotated[Timestamp, Meta(description="Everything until then is in it; in the log stack what is recorded.")]
    adds_up: bool
    total: BalanceView
    lanes: dict[Lane, BalanceView]


@get(
    "/v1/balance",
    tags=["Operation"],
    summary="Show the balance",
    operation_id="getBalance",
    opt=speaks({200: BalanceSheetView}, READS),
)
async def balance(request: Call) -> Response[bytes]:
    """Show what came in, what ended and what is open, at one moment; each line adds up, or something is wrong."""
    sheet = await ground_of(request, "balance").store.balance.read(request.user.app)
    lanes = {lane: _view(each) for (_, lane), each in sheet.balances.items()}
    adds_up = not any(each.differences for each in sheet.balances.values())
    return answer(200, BalanceSheetView(isoformat(sheet.at), adds_up, _view(together(sheet.balances.values())), lanes))


def _view(each: Balance) -> BalanceView:
    return BalanceView(_requests(each.requests), _notifications(each), _deliveries(each.deliveries))


def _requests(each: Requests) -> RequestsView:
    return RequestsView(each.requests, each.refused, each.duplicates, each.accepted, each.difference)


def _notifications(each: Balance) -> NotificationsView:
    flow = each.notifications
    return NotificationsView(
        accepted=each.requests.accepted,
        recipients=each.recipients,
        ended=dict(flow.ended),
        scheduled=flow.open.get(Waiting.SCHEDULED, 0),
        waiting=flow.open.get(Waiting.WAITING, 0),
        processing=flow.open.get(Waiting.PROCESSING, 0),
        difference=flow.difference,
    )


def _deliveries(flow: Flow) -> DeliveriesView:
    return DeliveriesView(
        targets=flow.came,
        ended=dict(flow.ended),
        waiting=flow.open.get(Waiting.WAITING, 0),
        parked=flow.open.get(Waiting.PARKED, 0),
        under_way=flow.open.get(Waiting.UNDER_WAY, 0),
        difference=flow.difference,
    )


ROUTES = [balance]
