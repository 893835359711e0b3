"""Routes of receipts: devices report with a token of their user, with a key of a backend, or by a signed link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.params import PathParameter, QueryParameter, RawBody
from msgspec import Meta, Struct

from waypost.domain.device_event import (
    TOKEN_LENGTH,
    DeviceEvent,
    EventKind,
    Reported,
    read_receipt_token,
)
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound
from waypost.domain.ids import AppId, DeviceId, parse_id
from waypost.domain.status import DeliveryStatus
from waypost.domain.submission import Identity
from waypost.domain.text import Text
from waypost.domain.time import isoformat
from waypost.entrypoints.access import DEVICES_OWN, READS_OWN, reached
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.bodies import IdText
from waypost.entrypoints.rest.parameters import PathApp, PathId, id_in
from waypost.entrypoints.rest.serving import vouch_for
from waypost.entrypoints.rest.views import Timestamp
from waypost.features.receipts.recording import record
from waypost.features.receipts.settings import secret_of
from waypost.pipeline.confirm import refuse_unsettled

LIMIT = 1_000
"""Receipts of one request."""


class SubmittedReceipt(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A report of a device: `token`, or `notification_id` with `device_id`."""

    event: EventKind
    token: Annotated[
        Annotated[str, Meta(min_length=TOKEN_LENGTH, max_length=TOKEN_LENGTH, pattern=r"^[A-Za-z0-9_-]+$")] | None,
        Meta(description="The last part of the link in `data.waypost_receipt`."),
    ] = None
    notification_id: IdText | None = None
    device_id: Identity | None = None
    action: Annotated[Text | None, Meta(description="The id of the button, where `event` is `action`.")] = None


class SubmittedReceipts(Struct, frozen=True, forbid_unknown_fields=True):
    """Reports of devices, oldest first."""

    receipts: Annotated[tuple[SubmittedReceipt, ...], Meta(min_length=1, max_length=LIMIT)]


class ReceiptResult(Struct, frozen=True):
    """The result of one report."""

    status: Annotated[
        DeliveryStatus | None,
        Meta(description="How the delivery stands now; null where there is none, or it is another user's."),
    ]


class ReceiptResults(Struct, frozen=True):
    """The results, in the order of the reports."""

    results: tuple[ReceiptResult, ...]


class DeviceEventView(Struct, frozen=True):
    """An event that a device reported."""

    n: int
    event: EventKind
    action: str | None
    at: Timestamp


class DeviceEventList(Struct, frozen=True):
    """The events of a notification, oldest first."""

    events: tuple[DeviceEventView, ...]


_receipts = msgspec.json.Decoder(SubmittedReceipts)
PathReceipt = Annotated[str, PathParameter(description="The signed token.")]
EventGiven = Annotated[EventKind, QueryParameter(description="What happened.")]
ActionGiven = Annotated[
    str | None, QueryParameter(description="The id of the button that was pressed.", max_length=128, required=False)
]


@post(
    "/v1/receipts",
    tags=["Receipts"],
    summary="Report what happened on devices",
    operation_id="postReceipts",
    status_code=200,
    opt=speaks(
        {200: ReceiptResults},
        DEVICES_OWN,
        body=SubmittedReceipts,
        example={
            "receipts": [
                {
                    "event": "opened",
                    "notification_id": "019c1234-5678-7abc-8def-0123456789ab",
                    "device_id": "phone-1",
                }
            ]
        },
        codes=WRITE_CODES,
    ),
)
async def post_receipts(request: Call, body: RawBody) -> Response[bytes]:
    """Report up to 1,000 events. A status only goes up: what is late, repeated or nobody's changes nothing."""
    said = decode(_receipts, body).receipts
    faults = [fault for n, each in enumerate(said) for fault in _faults(each, f"receipts[{n}]")]
    if faults:
        raise InvalidRequest(tuple(faults))
    ground, now = ground_of(request, "receipts"), api_of(request).clock.now()
    places: list[int] = []
    events: list[DeviceEvent] = []
    for n, (each, target) in enumerate(zip(said, await _targets(request, said), strict=True)):
        if target is not None:
            places.append(n)
            events.append(DeviceEvent(target.notification_id, target.n, each.event, now, each.action or ""))
    results: list[DeliveryStatus | None] = [None] * len(said)
    for n, status in zip(places, await record(ground, request.user.app, events), strict=True):
        results[n] = status
    return answer(200, ReceiptResults(tuple(map(ReceiptResult, results))))


@get(
    "/v1/notifications/{notification_id:str}/events",
    tags=["Receipts"],
    summary="List what devices reported of a notification",
    operation_id="listDeviceEvents",
    opt=speaks({200: DeviceEventList}, READS_OWN, codes=(ErrorCode.NOT_FOUND,)),
)
async def device_events(request: Call, notification_id: PathId) -> Response[bytes]:
    """List each event once for each target and button, with the time of its first report."""
    found = id_in(notification_id)
    reached(request.user, await api_of(request).views.detail(request.user.app, found))
    events = await ground_of(request, "receipts").store.device_events.of(found)
    return answer(
        200,
        DeviceEventList(
            tuple(DeviceEventView(each.n, each.kind, each.action or None, isoformat(each.at)) for each in events)
        ),
    )


@get(
    "/r/{app:str}/{receipt:str}",
    tags=["Receipts"],
    summary="Show the page of a signed link",
    operation_id="getReceiptLink",
    opt=speaks({200: str}, None, codes=(ErrorCode.NOT_FOUND,)),
)
async def show_link(
    request: Call,
    app: PathApp,
    receipt: PathReceipt,
    event: EventGiven = EventKind.DELIVERED,
    action: ActionGiven = None,
) -> Response[bytes]:
    """Show a page with a button that confirms. A GET changes nothing, since previews and scanners follow links."""
    _signed(request, app, receipt)
    return Response(_PAGE, headers={"content-type": "text/html; charset=utf-8", "cache-control": "no-store"})


@post(
    "/r/{app:str}/{receipt:str}",
    tags=["Receipts"],
    summary="Report by a signed link",
    operation_id="postReceiptLink",
    status_code=204,
    opt=speaks({204: None}, None, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def confirm_link(
    request: Call,
    app: PathApp,
    receipt: PathReceipt,
    event: EventGiven = EventKind.DELIVERED,
    action: ActionGiven = None,
) -> None:
    """Report without a session what happened on the device; saying it again changes nothing."""
    target = _signed(request, app, receipt)
    at = api_of(request).clock.now()
    reported = DeviceEvent(target.notification_id, target.n, event, at, action or "")
    refuse_unsettled(await record(ground_of(request, "receipts"), AppId(app), [reported]))


def _signed(request: Call, app: str, token: str) -> Reported:
    target = _read(request, AppId(app), token)
    if target is None:
        raise NotFound("no such link")
    vouch_for(request.scope)
    return target


def _read(request: Call, app: AppId, token: str) -> Reported | None:
    secret = secret_of(ground_of(request, "receipts").settings)
    return None if secret is None else read_receipt_token(secret, app, token)


def _faults(said: SubmittedReceipt, at: str) -> list[Fault]:
    named = said.notification_id is not None and said.device_id is not None
    if (said.token is None) != named or (said.token is not None and (said.notification_id or said.device_id)):
        return [Fault(at, "give token, or notification_id and device_id")]
    if (said.event is EventKind.ACTION) != (said.action is not None):
        return [Fault(f"{at}.action", "is the id of the button, and belongs to the event action")]
    return []


async def _targets(request: Call, said: Sequence[SubmittedReceipt]) -> list[Reported | None]:
    """Find the target that each report is about; None where there is none, or the caller does not reach it."""
    caller = request.user
    named = {each.notification_id: parse_id(each.notification_id) for each in said if each.notification_id is not None}
    known = await api_of(request).views.addressed(caller.app, list(named.values())) if named else {}
    found: list[Reported | None] = []
    for each in said:
        if each.token is not None:
            found.append(_read(request, caller.app, each.token))
            continue
        notification_id = named[each.notification_id or ""]
        to = known.get(notification_id)
        is_reached = to is not None and caller.user in (None, to.user_id)
        n = to.targets.get(DeviceId(each.device_id or "")) if to is not None and is_reached else None
        found.append(None if n is None else Reported(notification_id, n))
    return found


_PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>Confirm</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;display:grid;place-content:center;min-height:90vh;margin:1rem}
button{font:inherit;padding:.6rem 1.2rem}</style>
<form method="post"><p>Did this message reach you?</p><button>Yes, it did</button></form></html>"""

ROUTES = [post_receipts, device_events, show_link, confirm_link]
