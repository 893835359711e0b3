"""The route that sends at another time what waits for its own."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, patch
from litestar.params import RawBody
from msgspec import Meta, Struct

from waypost.domain.amendment import NotOpen, Reschedule, Rescheduled, TooLate
from waypost.domain.drafting import TOO_FAR
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound, WaypostError
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.local_time import LocalTime, instant_at, local_faults, parse_local
from waypost.domain.submission import SCHEDULE_LIMIT_MS, Moment
from waypost.domain.time import Instant, from_datetime, isoformat, later
from waypost.entrypoints.access import SENDS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import PathId, id_in
from waypost.entrypoints.rest.recording import record
from waypost.entrypoints.rest.views import Timestamp
from waypost.entrypoints.submitting import Id
from waypost.ports.audit import Act

_E = ErrorCode


class NewTime(Struct, frozen=True, forbid_unknown_fields=True):
    """Another time of sending: one of both."""

    scheduled_at: Annotated[Moment | None, Meta(description="The earliest time of sending (RFC 3339).")] = None
    send_at: Annotated[LocalTime | None, Meta(description="The same on the user's clock.")] = None


class RescheduledView(Struct, frozen=True):
    """A notification and when it is due from now on."""

    id: Id
    scheduled_at: Timestamp


_decoder = msgspec.json.Decoder(NewTime)


@patch(
    "/v1/notifications/{notification_id:str}",
    tags=["Notifications"],
    summary="Send a scheduled notification at another time",
    operation_id="rescheduleNotification",
    status_code=200,
    opt=speaks(
        {200: RescheduledView},
        SENDS,
        body=NewTime,
        example={"scheduled_at": "2026-12-01T09:00:00Z"},
        codes=(_E.NOT_FOUND, _E.ALREADY_FINAL, _E.WRONG_STATE, *WRITE_CODES),
    ),
)
async def reschedule(request: Call, notification_id: PathId, body: RawBody) -> Response[bytes]:
    """Give what still waits for its time another one; its TTL counts from then on. A time that is over is now.

    409 `wrong_state` from its time on: of this request and the timer the first counts.
    """
    said = decode(_decoder, body)
    wanted = id_in(notification_id)
    at = await _time(request, wanted, said)
    await record(request, Act.NOTIFICATION_RESCHEDULED, [format_id(wanted)])
    api = api_of(request)
    (changed,) = await api.intake.work.amend([Reschedule(request.user.app, wanted, at)], api.clock.now())
    match changed:
        case Rescheduled(due_at):
            return answer(200, RescheduledView(format_id(wanted), isoformat(due_at)))
        case NotOpen(None):
            raise NotFound("no such notification")
        case NotOpen(status):
            raise WaypostError(f"it is {status} already", _E.ALREADY_FINAL)
        case TooLate():
            raise WaypostError("it does not wait for its time any more, or never did", _E.WRONG_STATE)
        case _:
            raise AssertionError("an order for another time is answered as one")


async def _time(request: Call, notification_id: NotificationId, said: NewTime) -> Instant:
    """Find the instant that is meant; a local time is meant in the zone of the notification's user."""
    api, app = api_of(request), request.user.app
    if (said.scheduled_at is None) == (said.send_at is None):
        raise InvalidRequest((Fault("", "give scheduled_at or send_at"),))
    if said.send_at is not None:
        if faults := local_faults("send_at", said.send_at):
            raise InvalidRequest(tuple(faults))
        detail = await api.views.detail(app, notification_id)
        if detail is None:
            raise NotFound("no such notification")
        user = detail.record.notification.user_id
        zones = {} if api.intake.zones is None else await api.intake.zones(app, [user])
        at = instant_at(parse_local(said.send_at), zones[user].name if user in zones else "UTC")
    else:
        assert said.scheduled_at is not None, "one of both is there"
        at = from_datetime(said.scheduled_at)
    if at > later(api.clock.now(), SCHEDULE_LIMIT_MS):
        raise InvalidRequest((Fault("send_at" if said.scheduled_at is None else "scheduled_at", TOO_FAR),))
    return at
