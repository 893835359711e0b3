"""Path and query parameters: their types, and how they are read."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import unquote

from litestar import Request
from litestar.params import HeaderParameter, PathParameter, QueryParameter
from msgspec import Meta

from waypost.domain.errors import Fault, InvalidRequest, NotFound
from waypost.domain.ids import NotificationId, UserId, parse_id
from waypost.domain.local_time import LocalTime
from waypost.domain.segment import SegmentName, TopicName
from waypost.domain.submission import NO_CONTROLS, CampaignName, Identity
from waypost.domain.submitted_device import TokenText
from waypost.entrypoints.access import own
from waypost.entrypoints.decoding import checked
from waypost.entrypoints.rest.answers import spoken_of
from waypost.entrypoints.rest.bodies import IdText, PrefixText
from waypost.pipeline.intake import Caller

Limit = Annotated[int, QueryParameter(ge=1, le=500, description="The most entries to return.")]
CursorGiven = Annotated[
    str | None,
    QueryParameter(
        max_length=128, min_length=1, description="The value of `next` on the previous page.", required=False
    ),
]
LongCursor = Annotated[
    str | None,
    QueryParameter(
        max_length=1024, min_length=1, description="The value of `next` on the previous page.", required=False
    ),
]
"""The cursor of pages that are in the order of names."""
UserGiven = Annotated[
    str | None,
    QueryParameter(max_length=128, min_length=1, pattern=NO_CONTROLS, description="Only this user's.", required=False),
]
HeaderKey = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", description="The same as `idempotency_key` in the body.", required=False),
]
PathId = Annotated[str, PathParameter(description="The notification's id.")]
PathJob = Annotated[str, PathParameter(description="The job's id.")]
PathIdentity = Annotated[str, PathParameter(description="Percent-encode characters that a path cannot hold.")]
"""A user or device as it stands in the path; ``identity_in`` reads it."""
ContactKind = Literal["phone", "email", "url"]
PathApp = Annotated[str, PathParameter(description="The app.")]
PathContact = Annotated[str, PathParameter(description="`phone`, `email` or `url`.")]

PathSchedule = Annotated[str, PathParameter(description="The schedule's name.")]
PathOccurrence = Annotated[str, PathParameter(description="The local time, such as `2026-12-01T09:00`.")]
NameText = Annotated[
    str, Meta(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?!\n)$", examples=["weekly-news"])
]
"""A name that a caller gives to something of the app."""

LinkText = Annotated[str, Meta(min_length=1, max_length=512)]

PATH_KINDS = {
    "notification_id": IdText,
    "job_id": IdText,
    "user_id": Identity,
    "device_id": Identity,
    "token": TokenText,
    "kind": ContactKind,
    "app": Identity,
    "channel": Identity,
    "name": Identity,
    "campaign": CampaignName,
    "receipt": Identity,
    "prefix": PrefixText,
    "link": LinkText,
    "schedule": NameText,
    "series": NameText,
    "occurrence": LocalTime,
    "topic": TopicName,
    "segment": SegmentName,
}
"""The types of path parameters once they are read."""


def id_in(path_part: str) -> NotificationId:
    """Read the id a path names; NotFound where it cannot be one."""
    try:
        return parse_id(path_part)
    except ValueError:
        raise NotFound("no such notification") from None


def contact_in(path_part: str) -> ContactKind:
    """Read the kind of a contact; NotFound where it is none."""
    match path_part:
        case "phone" | "email" | "url" as kind:
            return kind
        case _:
            raise NotFound("no such kind of contact; there are phone, email and url")


def identity_in(path_part: str, name: str) -> str:
    """Read the user or device a path names, its percent-encoding undone; InvalidRequest names it by *name*."""
    return text_in(path_part, name, Identity)


def user_in(caller: Caller, path_part: str) -> UserId:
    """Read the user a path names; NotFound where an end user calls, and it is somebody else."""
    return own(caller, UserId(identity_in(path_part, "user_id")))


def text_in(path_part: str, name: str, kind: Any) -> str:
    """Read the text of *kind* that a path names, its percent-encoding undone; InvalidRequest names it by *name*."""
    try:
        text = unquote(path_part, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequest((Fault(name, "not valid UTF-8"),)) from None
    read: str = checked(kind, text, name)
    return read


_NOT_IN_QUERY = {"request", "body", "header_key", "acting_for"}


def refuse_unknown_parameters(request: Request[Any, Any, Any]) -> None:
    """Refuse a query parameter that the route does not know, or that says `null`, which would be read as left out.

    A misspelt filter must not list everything.
    """
    handler = request.route_handler
    if spoken_of(handler).access is None or not request.query_params:
        return
    known = handler.parsed_fn_signature.parameters.keys() - request.path_params.keys() - _NOT_IN_QUERY
    faults = [Fault(name, "unknown parameter") for name in request.query_params if name not in known]
    faults += [Fault(name, "null is no value here") for name, value in request.query_params.items() if value == "null"]
    if faults:
        raise InvalidRequest(tuple(dict.fromkeys(faults)))
