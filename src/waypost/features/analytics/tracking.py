"""The route by which apps report events of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from litestar import Response, post
from litestar.params import RawBody
from msgspec import Meta, Struct

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, WaypostError
from waypost.domain.ids import AppId, UserId
from waypost.domain.submission import Identity, Moment
from waypost.domain.text import Text
from waypost.domain.time import DAY_MS, Instant, from_datetime, later
from waypost.domain.tracked import OWN_NAMES, TrackedEvent
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.features.analytics.settings import AnalyticsSettings
from waypost.features.parts import Ground
from waypost.pipeline.intake import Caller

LIMIT: Final = 1_000
"""Events of one request."""
KEPT_DAYS: Final = 31
"""Days for which the id of an event is known, and so the age of the oldest that counts."""
AHEAD_MS: Final = DAY_MS
"""Milliseconds that the clock of a device may be ahead."""

EventName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z][A-Za-z0-9_.:-]*(?!\n)$",
        description="What happened, in the app's own words.",
        examples=["order_paid"],
    ),
]


class SubmittedEvent(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An event of the app's own."""

    name: EventName
    user_id: Annotated[Identity | None, Meta(description="The user; left out, whose token it is.")] = None
    at: Annotated[Moment | None, Meta(description="When it happened; now if omitted.")] = None
    id: Annotated[Text | None, Meta(description="Your own id: with the same `at`, it counts once. It needs `at`.")] = (
        None
    )


class SubmittedEvents(Struct, frozen=True, forbid_unknown_fields=True):
    """Events of the app's own."""

    events: Annotated[tuple[SubmittedEvent, ...], Meta(min_length=1, max_length=LIMIT, description="What happened.")]


class TrackedEvents(Struct, frozen=True):
    """The numbers of what became of the events of a request."""

    counted: Annotated[int, Meta(description="Counted now.")]
    repeated: Annotated[int, Meta(description="Known by their ids already.")]
    dropped: Annotated[int, Meta(description=f"Of more than {KEPT_DAYS} days ago, or more than a day ahead.")]


_events = msgspec.json.Decoder(SubmittedEvents)


@post(
    "/v1/events",
    tags=["Analytics"],
    summary="Report events of the app",
    operation_id="postEvents",
    status_code=200,
    opt=speaks(
        {200: TrackedEvents},
        DEVICES_OWN,
        body=SubmittedEvents,
        example={
            "events": [
                {
                    "name": "order_paid",
                    "user_id": "user-42",
                    "at": "2026-11-26T09:30:00Z",
                    "id": "order-1234",
                }
            ]
        },
        codes=(ErrorCode.FORBIDDEN, *WRITE_CODES),
    ),
)
async def post_events(request: Call, body: RawBody) -> Response[bytes]:
    """Count up to 1,000 events. An end user's token reports that user's, of the names that are open to users."""
    said = decode(_events, body).events
    ground: Ground = ground_of(request, "analytics")
    users = [_user(request.user, each, n) for n, each in enumerate(said)]
    _refuse(said, request.user, ground.settings)
    now = api_of(request).clock.now()
    made = [_event(request.user.app, user, each, now) for user, each in zip(users, said, strict=True)]
    first, last = later(now, -KEPT_DAYS * DAY_MS), later(now, AHEAD_MS)
    taken = [each for each in made if first <= each.at <= last]
    counted = await ground.store.user_events.track(taken, ground.hears)
    return answer(200, TrackedEvents(counted, len(taken) - counted, len(made) - len(taken)))


def _user(caller: Caller, said: SubmittedEvent, n: int) -> UserId:
    """Return whose event it is; it must be somebody's, and an end user's own where one calls."""
    if caller.user is not None and said.user_id not in (None, caller.user):
        raise WaypostError("an end user's token reports the user's own events", ErrorCode.FORBIDDEN)
    if said.user_id is None and caller.user is None:
        raise InvalidRequest((Fault(f"events[{n}].user_id", "required"),))
    return UserId(said.user_id or caller.user or "")


def _refuse(said: Sequence[SubmittedEvent], caller: Caller, settings: AnalyticsSettings) -> None:
    """Refuse all of a request where one of its events is none of the caller's to report."""
    faults = [Fault(f"events[{n}].name", "is counted by Waypost") for n, it in enumerate(said) if it.name in OWN_NAMES]
    faults += [
        Fault(f"events[{n}].at", "required with id: both together count once")
        for n, it in enumerate(said)
        if it.id is not None and it.at is None
    ]
    if faults:
        raise InvalidRequest(tuple(faults))
    if caller.user is not None and any(each.name not in settings.user_events for each in said):
        raise WaypostError("an event that end users may not report (analytics.user_events)", ErrorCode.FORBIDDEN)


def _event(app: AppId, user: UserId, said: SubmittedEvent, now: Instant) -> TrackedEvent:
    at = now if said.at is None else from_datetime(said.at)
    key = None if said.id is None else _key(app, said.id, at)
    return TrackedEvent(app, user, said.name, at, key=key)


def _key(app: AppId, said: str, at: Instant) -> bytes:
    text = f"{len(app)}:{app}{at}:{said}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
