"""The route that explains what would happen, and does nothing."""

from __future__ import annotations

import base64
from functools import partial
from typing import Annotated, Literal, assert_never

import msgspec
from litestar import Response, post
from litestar.params import RawBody
from msgspec import Meta, Struct

from waypost.domain.best_hour import BasedOn, BestHour
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.dedup import ClaimKind, shown
from waypost.domain.local_time import ZoneSource
from waypost.domain.notification import Lane
from waypost.domain.routing import Deferred, LeftOut, Noted, Ruling
from waypost.domain.settlement import Suppressed
from waypost.domain.submission import Submission
from waypost.domain.time import isoformat
from waypost.entrypoints.access import READS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.views import Timestamp
from waypost.entrypoints.submitting import Hash
from waypost.pipeline.explain import ExplainedTarget, Explanation
from waypost.ports.sender import Rendered

_submission = msgspec.json.Decoder(Submission)


class RenderedView(Struct, frozen=True, omit_defaults=True):
    """The request that would be sent, without token and credentials."""

    headers: dict[str, str]
    size_bytes: int
    limit_bytes: int
    body: Annotated[str | None, Meta(description="The body, if it is text.")] = None
    body_base64: Annotated[str | None, Meta(description="The body in base64, if it is not text.")] = None
    refused: Annotated[str | None, Meta(description="The reason why it would not be sent.")] = None


class FailureView(Struct, frozen=True):
    """The reason of a failure, as the receipt would have it."""

    code: Annotated[str, Meta(examples=["missing_variable"])]
    reason: Annotated[str, Meta(examples=["the variable order.total is missing"])]


class ExplainedTargetView(Struct, frozen=True):
    """One device: the message that it would get, or the reason why it gets none."""

    n: int
    device_id: str
    channel: Channel | None
    suppressed: Annotated[str | None, Meta(description="The reason why this device would be skipped.")]
    credential: str | None
    rendered: RenderedView | None
    scope: Annotated[
        str | None,
        Meta(description="The topic or push service whose refusals would stop it, if any."),
    ] = None
    waits_for: Annotated[
        tuple[str, ...],
        Meta(description="The targets that it waits for first; it is not sent if one of them is confirmed in time."),
    ] = ()
    fallbacks: Annotated[
        tuple[str, ...], Meta(description="The accounts that would be tried if `credential` does not take it.")
    ] = ()
    fails: Annotated[
        FailureView | None, Meta(description="The reason why nothing can be said to it: its delivery would fail.")
    ] = None


class RulingView(Struct, frozen=True):
    """The verdict of one routing rule on one address; rules that let it pass are not listed."""

    rule: Annotated[str, Meta(description="Such as `active`, `chosen`, `token_use`, `platform` or `credential`.")]
    device_id: str
    verdict: Annotated[
        Literal["left_out", "suppressed", "deferred", "noted", "sent_with"],
        Meta(
            description="Left out: no target at all. Suppressed: a receipt says so. Deferred: it waits. Noted: it"
            " passes, for the reason given."
        ),
    ]
    reason: Annotated[str, Meta(description="Why; of `deferred` the end of the wait, of `sent_with` the credential.")]


class BestTimeView(Struct, frozen=True):
    """The hour in which most is read, and whose habits say so."""

    hour: Annotated[int | None, Meta(description="The hour of the user's clock; null where too little was read.")]
    based_on: Annotated[
        BasedOn | None,
        Meta(description="The user, or all of the app; null: it is sent at once, or as the window begins."),
    ]
    rate: Annotated[float | None, Meta(description="The part of what was sent in this hour that was read.")]


class ExplanationView(Struct, frozen=True):
    """The predicted outcome of a submission. Nothing was accepted, claimed or sent."""

    user_id: str
    lane: Lane
    expires_at: Timestamp
    scheduled_at: Timestamp | None
    time_zone: Annotated[
        str | None, Meta(description="The zone in which `send_at` is meant; null where that is not given.")
    ]
    time_zone_of: Annotated[
        ZoneSource | None,
        Meta(description="Whose zone that is: the user's, else the app's; `nowhere` where neither has one: UTC."),
    ]
    best_time: Annotated[
        BestTimeView | None, Meta(description="What `send_at: best` follows from; null where that is not given.")
    ]
    content_hash: Hash
    dedup: Annotated[
        tuple[ClaimKind, ...], Meta(description="The dedup keys that it would claim; empty if it may be repeated.")
    ]
    targets: Annotated[tuple[ExplainedTargetView, ...], Meta(description="Empty if the user has no device.")]
    routing: Annotated[
        tuple[RulingView, ...], Meta(description="What the rules said that found these targets, in order.")
    ]


@post(
    "/v1/explain",
    tags=["Notifications"],
    summary="Explain what would happen",
    operation_id="explain",
    status_code=200,
    opt=speaks(
        {200: ExplanationView}, READS, body=Submission, example={"user_id": "user-1", "title": "Your parcel is here"}
    ),
)
async def explain(request: Call, body: RawBody) -> Response[bytes]:
    """Take a submission and return its targets, the rendered bytes, sizes and reasons. Nothing is sent."""
    submission = decode(_submission, body)
    explanation = await api_of(request).explain.explain(request.user.app, request.user.name, submission)
    return answer(200, _view(explanation))


def _view(explanation: Explanation) -> ExplanationView:
    notification = explanation.notification
    scheduled_at, zone = notification.scheduled_at, explanation.zone
    return ExplanationView(
        user_id=notification.user_id,
        lane=notification.lane,
        expires_at=isoformat(notification.expires_at),
        scheduled_at=None if scheduled_at is None else isoformat(scheduled_at),
        time_zone=None if zone is None else zone.name,
        time_zone_of=None if zone is None else zone.source,
        best_time=None if explanation.best is None else _best_time(explanation.best.hour),
        content_hash=shown(explanation.content_hash),
        dedup=explanation.dedup,
        targets=tuple(_target(target) for target in explanation.targets),
        routing=tuple(ruling_view(ruling) for ruling in explanation.rulings),
    )


def _best_time(hour: BestHour | None) -> BestTimeView:
    if hour is None:
        return BestTimeView(None, None, None)
    return BestTimeView(hour.hour, hour.based_on, round(hour.rate, 4))


def _target(target: ExplainedTarget) -> ExplainedTargetView:
    rendered = None if target.rendered is None else rendered_view(target.rendered)
    credential = None if target.credential is None else str(target.credential)
    waits_for = () if target.after is None else target.after.names
    fallbacks = tuple(str(each) for each in target.fallbacks)
    return ExplainedTargetView(
        target.n,
        target.device_id,
        target.channel,
        target.suppressed,
        credential,
        rendered,
        target.scope,
        waits_for,
        fallbacks,
        None if target.unsaid is None else FailureView(target.unsaid.code, target.unsaid.why),
    )


def ruling_view(ruling: Ruling) -> RulingView:
    """Show what a rule said."""
    said = partial(RulingView, ruling.rule, ruling.name)
    match ruling.verdict:
        case LeftOut(reason):
            return said("left_out", reason)
        case Suppressed(reason):
            return said("suppressed", reason)
        case Deferred(until):
            return said("deferred", isoformat(until))
        case Noted(what):
            return said("noted", what)
        case CredentialId():
            return said("sent_with", str(ruling.verdict))
        case _:
            assert_never(ruling.verdict)


def rendered_view(rendered: Rendered) -> RenderedView:
    """Show a request; its body as text, where it is one."""
    text = binary = None
    try:
        text = rendered.body.decode()
    except UnicodeDecodeError:
        binary = base64.b64encode(rendered.body).decode()
    return RenderedView(rendered.headers, rendered.size_bytes, rendered.limit_bytes, text, binary, rendered.refused)


ROUTES = [explain]
