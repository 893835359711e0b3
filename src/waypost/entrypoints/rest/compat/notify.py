"""``POST /v1/notify``: the notify API, translated onto the intake."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, post
from litestar.params import RawBody
from msgspec import Meta, Struct

from waypost.domain.content import Kind, Urgency
from waypost.domain.submission import ContentSubmission, Identity, Line, Seconds
from waypost.domain.vocabulary import Vocabulary, notification_word
from waypost.entrypoints.access import SENDS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import ONE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Api, Call, api_of
from waypost.entrypoints.rest.parameters import HeaderKey
from waypost.entrypoints.rest.submitting import accept
from waypost.entrypoints.submitting import Id
from waypost.pipeline.intake import Caller

PATH = "/v1/notify"

_ID = "019c1234-5678-7abc-8def-0123456789ab"


class Notify(Struct, frozen=True, forbid_unknown_fields=True):
    """A notification to submit; the same content is sent once within the app's dedup window."""

    user_id: Identity
    title: Line | None = None
    body: str | None = None
    data: Annotated[dict[str, Any], Meta(description="Any JSON object, passed to the app.")] = {}
    notif_type: Annotated[Kind, Meta(description="`kind` of a notification.")] = Kind.VISIBLE
    urgency: Urgency = Urgency.NORMAL
    ttl_seconds: Annotated[
        Seconds | None, Meta(description="Seconds for which sending is worthwhile; the app's default if omitted.")
    ] = None


class Notified(Struct, frozen=True):
    """An accepted notification, or the earlier one that it duplicates."""

    notification_id: Id
    status: Annotated[str, Meta(examples=["queued"], description="In the words `s1` (see the look-up).")]
    deduplicated: Annotated[bool, Meta(description="True for a duplicate: nothing new was accepted.")]


_notify = msgspec.json.Decoder(Notify)


async def submit_notify(api: Api, caller: Caller, header_key: str | None, body: bytes) -> tuple[int, Notified]:
    """Accept one: 202 where it is new, 200 where it was said before."""
    asked = decode(_notify, body)
    submission = ContentSubmission(
        user_id=asked.user_id,
        title=asked.title,
        body=asked.body,
        data=asked.data,
        kind=asked.notif_type,
        urgency=asked.urgency,
        ttl=asked.ttl_seconds,
    )
    made = await accept(api, caller, header_key, submission)
    word = notification_word(Vocabulary.NOTIFY, made.status)
    assert word is not None, "the notify API has a word for every status of a notification"
    return (200 if made.deduplicated else 202), Notified(made.id, word, made.deduplicated)


@post(
    PATH,
    tags=["Other APIs"],
    summary="Submit a notification (notify API)",
    operation_id="notify",
    opt=speaks(
        {202: Notified, 200: Notified},
        SENDS,
        body=Notify,
        example={"user_id": "user-1", "title": "Your parcel is here", "body": "Left at the front door."},
        shown={
            202: {"notification_id": _ID, "status": "queued", "deduplicated": False},
            200: {"notification_id": _ID, "status": "completed", "deduplicated": True},
        },
        meanings={202: "Accepted: durable, and will be sent.", 200: "Said before: the first one's id."},
        codes=ONE_CODES,
    ),
)
async def notify(request: Call, body: RawBody, header_key: HeaderKey = None) -> Response[bytes]:
    """Submit one as `POST /v1/notifications` does, with fewer fields; `Idempotency-Key` tells a repeat."""
    return answer(*await submit_notify(api_of(request), request.user, header_key, body))


ROUTES = [notify]
