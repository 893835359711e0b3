"""Routes of alerts: list them, retry or resolve one."""

from __future__ import annotations

from typing import Annotated, Final

from litestar import Response, get, post
from litestar.params import QueryParameter
from msgspec import Meta, Struct

from waypost.domain.amendment import Amended, NotOpen, Recover, Remedy, TooLate
from waypost.domain.errors import ErrorCode, NotFound, WaypostError
from waypost.domain.ids import format_id
from waypost.domain.recovery import AlertType
from waypost.domain.time import isoformat
from waypost.entrypoints.access import ADMINISTERS, READS
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import CursorGiven, Limit, PathId, id_in
from waypost.entrypoints.rest.recording import record
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.features.parts import Ground
from waypost.features.recovery.scanning import tell_resolved
from waypost.pipeline.intake import require_replayable
from waypost.ports.audit import Act
from waypost.ports.recovery import Alert, AlertQuery, How

BY_OPERATOR: Final = "ordered by an operator"
_CODES: Final = (ErrorCode.NOT_FOUND, ErrorCode.WRONG_STATE, *WRITE_CODES)

ResolvedGiven = Annotated[
    bool | None, QueryParameter(description="Only those that are resolved, or only those that are not.", required=False)
]


class AlertView(Struct, frozen=True):
    """An alert about one notification, by whose id it is retried or resolved."""

    notification_id: str
    alert_type: Annotated[AlertType, Meta(description="What is wrong with it.")]
    reason: Annotated[str, Meta(description="Why nobody seems to move it.")]
    redis_status: Annotated[str | None, Meta(description="What the second record says, where one is kept.")]
    db_status: Annotated[str, Meta(description="Its status when the alert was raised.")]
    retry_count: Annotated[int, Meta(description="Retries of the target that had the most.")]
    raised_at: Annotated[Timestamp, Meta(description="When the alert was raised.")]
    resolved: Annotated[bool, Meta(description="Whether the alert is over.")]
    resolved_at: Annotated[Timestamp | None, Meta(description="When it was.")]
    how: Annotated[How | None, Meta(description="How it was resolved.")]


class AlertPage(Struct, frozen=True):
    """Alerts, the newest notification first."""

    items: tuple[AlertView, ...]
    next: Cursor


@get(
    "/v1/alerts",
    tags=["Alerts"],
    summary="List alerts",
    operation_id="listAlerts",
    opt=speaks({200: AlertPage}, READS, codes=(ErrorCode.INVALID_CURSOR,)),
)
async def listed(
    request: Call, resolved: ResolvedGiven = None, cursor: CursorGiven = None, limit: Limit = 50
) -> Response[bytes]:
    """List alerts, the newest notification first; those resolved are deleted after a day."""
    before = None if cursor is None else cursors.notification(cursor)
    query = AlertQuery(request.user.app, resolved, before, limit)
    alerts = await ground_of(request, "recovery").store.recovery.alerts(query)
    following = cursors.of_notification(alerts[-1].notification_id) if len(alerts) == limit else None
    return answer(200, AlertPage(tuple(map(_view, alerts)), following))


@post(
    "/v1/alerts/{notification_id:str}/retry",
    tags=["Alerts"],
    summary="Retry the notification of an alert",
    operation_id="retryAlert",
    status_code=202,
    opt=speaks({202: AlertView}, ADMINISTERS, codes=(*_CODES, ErrorCode.NOT_REPLAYABLE)),
)
async def retry(request: Call, notification_id: PathId) -> Response[bytes]:
    """Offer the notification to workers again, or begin a new round of one that has failed; closes the alert."""
    found = await _open_alert(request, notification_id)
    await record(request, Act.ALERT_RETRIED, [format_id(found.notification_id)])
    helped = await _help(request, found, Remedy.AGAIN)
    if isinstance(helped, NotOpen):
        (result,) = await api_of(request).intake.replay(request.user, [found.notification_id])
        require_replayable(result)
    return answer(202, await _closed(request, found, How.RETRIED))


@post(
    "/v1/alerts/{notification_id:str}/resolve",
    tags=["Alerts"],
    summary="Resolve an alert",
    operation_id="resolveAlert",
    status_code=200,
    opt=speaks({200: AlertView}, ADMINISTERS, codes=_CODES),
)
async def resolve(request: Call, notification_id: PathId) -> Response[bytes]:
    """Close the alert. A notification that is not final by now has failed; it can be replayed as a dead letter."""
    found = await _open_alert(request, notification_id)
    await record(request, Act.ALERT_RESOLVED, [format_id(found.notification_id)])
    await _help(request, found, Remedy.FAILED)
    return answer(200, await _closed(request, found, How.RESOLVED))


async def _open_alert(request: Call, notification_id: str) -> Alert:
    """Find an alert that is not resolved; NotFound or WRONG_STATE otherwise."""
    ground: Ground = ground_of(request, "recovery")
    found = await ground.store.recovery.alert(request.user.app, id_in(notification_id))
    if found is None:
        raise NotFound("no such alert")
    if found.resolved_at is not None:
        raise WaypostError("it is resolved already", ErrorCode.WRONG_STATE)
    return found


async def _help(request: Call, alert: Alert, remedy: Remedy) -> Amended:
    """Apply a remedy to the notification; WRONG_STATE where a worker has it."""
    order = Recover(alert.app, alert.notification_id, remedy, BY_OPERATOR)
    ground: Ground = ground_of(request, "recovery")
    (answered,) = await ground.work.amend([order], api_of(request).clock.now())
    if isinstance(answered, TooLate):
        raise WaypostError("a worker has it just now", ErrorCode.WRONG_STATE)
    return answered


async def _closed(request: Call, alert: Alert, how: How) -> AlertView:
    """Close an alert, and say so once, whoever else does it in this moment."""
    ground: Ground = ground_of(request, "recovery")
    now = api_of(request).clock.now()
    if await ground.store.recovery.resolve(alert.app, alert.notification_id, how, now):
        tell_resolved(ground, alert, how)
    after = await ground.store.recovery.alert(alert.app, alert.notification_id)
    return _view(alert if after is None else after)


def _view(alert: Alert) -> AlertView:
    resolved_at = alert.resolved_at
    return AlertView(
        format_id(alert.notification_id),
        alert.type,
        alert.reason,
        alert.redis_status,
        alert.db_status,
        alert.retry_count,
        isoformat(alert.raised_at),
        resolved_at is not None,
        None if resolved_at is None else isoformat(resolved_at),
        alert.how,
    )


ROUTES = [listed, retry, resolve]
