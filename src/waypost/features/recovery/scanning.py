"""The search: suspects are noted, looked at a second time, and healed or told to an operator."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, assert_never

from msgspec.structs import replace

from waypost.domain.amendment import Amended, NotOpen, Recover, Recovered, Remedy, TooLate
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, NotificationId, format_id
from waypost.domain.recovery import GHOST, Heal, Raise, Stuck, Thresholds, decide, stuck
from waypost.domain.retry import ErrorClass, RetryRules
from waypost.domain.sending_record import RecordStatus, SendingRecord
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.features.parts import Ground
from waypost.features.recovery.settings import RecoverySettings
from waypost.pipeline.sweep import PAGE
from waypost.ports.recovery import Alert, AlertQuery, Claimed, Cleared, Concluded, How, Retried
from waypost.telemetry import Event, Metric

NO_ANSWER: Final = "; the worker that has it does not answer"


async def scan(ground: Ground) -> None:
    """Search once: note new suspects, decide about those seen before, and close alerts of what is over."""
    settings: RecoverySettings = ground.settings
    recovery, now = ground.store.recovery, ground.clock.now()
    thresholds = _thresholds(settings)
    seen_before = later(now, -round(settings.poll_s * SECOND_MS / 2))
    suspects = await recovery.suspects(seen_before, settings.batch)
    found = await recovery.search(thresholds, now, settings.batch)
    ghosts = await _ghosts(ground, found)
    claimed = await recovery.claim([*suspects, *ghosts], worker_name(), now)
    records = await _records(ground, [each.standing.id for each in claimed])
    looked = [await _look_apart(ground, each, records.get(each.standing.id), now) for each in claimed]
    news = [each for each in looked if each is not None]
    for alert in await recovery.conclude(news, now):
        ground.telemetry.event(
            Event.ALERT_RAISED,
            app=alert.app,
            notification_id=format_id(alert.notification_id),
            type=alert.type,
            reason=alert.reason,
        )
        ground.telemetry.count(Metric.ALERTS_RAISED, app=alert.app, type=alert.type)
    await _heal_alerted_ghosts(ground, now)
    while ended := await recovery.end(now, PAGE):
        for alert in ended:
            tell_resolved(ground, alert, How.ENDED)


async def drop_old(ground: Ground, now: Instant) -> int:
    """Delete a page of alerts that were resolved long enough ago."""
    settings: RecoverySettings = ground.settings
    return await ground.store.recovery.drop_before(later(now, -settings.keep_resolved_s * SECOND_MS), PAGE)


def tell_resolved(ground: Ground, alert: Alert, how: How) -> None:
    """Report that an alert is resolved."""
    named = format_id(alert.notification_id)
    ground.telemetry.event(Event.ALERT_RESOLVED, app=alert.app, notification_id=named, how=how)
    ground.telemetry.count(Metric.ALERTS_RESOLVED, app=alert.app, how=how)


def worker_name() -> str:
    """Name this process among all that may look after a suspect."""
    return f"{socket.gethostname()}/{os.getpid()}"


async def _ghosts(ground: Ground, found: Sequence[Stuck]) -> list[NotificationId]:
    """Return those that were delivered by the record: these need no second look."""
    records = await _records(ground, [each.standing.id for each in found])
    rounds = {each.standing.id: each.standing.expires_at for each in found}
    return [one for one, record in records.items() if _is_ghost(record, rounds[one])]


def _is_ghost(record: SendingRecord, expires_at: Instant) -> bool:
    return record.status is RecordStatus.DELIVERED and record.is_of(expires_at)


async def _heal_alerted_ghosts(ground: Ground, now: Instant) -> None:
    """Tell the store what was sent of what has an open alert: its record came later."""
    for app in ground.config.apps if ground.records is not None else ():
        query: AlertQuery | None = AlertQuery(app, resolved=False, limit=PAGE)
        while query is not None:
            page = await ground.store.recovery.alerts(query)
            records = await _records(ground, [each.notification_id for each in page])
            for one, record in records.items():
                detail = await ground.store.views.detail(app, one)
                if detail is not None and _is_ghost(record, detail.record.notification.expires_at):
                    with suppress(Unavailable):  # the next search tries again
                        (answer,) = await ground.work.amend([Recover(app, one, Remedy.SENT, GHOST)], now)
                        _tell_recovered(ground, answer, app, one, Remedy.SENT, GHOST)
            query = replace(query, before=page[-1].notification_id) if len(page) == PAGE else None


def _tell_recovered(
    ground: Ground, answer: Amended, app: AppId, notification_id: NotificationId, remedy: Remedy, why: str
) -> None:
    """Report that a remedy was applied, where it was."""
    if isinstance(answer, Recovered):
        named = format_id(notification_id)
        ground.telemetry.event(Event.NOTIFICATION_RECOVERED, app=app, notification_id=named, remedy=remedy, reason=why)
        ground.telemetry.count(Metric.RECOVERED, app=app, remedy=remedy)


async def _records(ground: Ground, ids: Sequence[NotificationId]) -> dict[NotificationId, SendingRecord]:
    """Read the records of *ids*; none while Redis is away: then people have to look."""
    if ground.records is None or not ids:
        return {}
    try:
        return await ground.records.read(ids)
    except Unavailable:
        return {}


async def _look_apart(ground: Ground, claimed: Claimed, record: SendingRecord | None, now: Instant) -> Concluded | None:
    """Look at one suspect; None where that fails: it stays claimed for a minute, and the others do not wait."""
    try:
        return await _look(ground, claimed, record, now)
    except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
        named = format_id(claimed.standing.id)
        ground.telemetry.event(
            Event.STAGE_FAILED, stage="recover", error=type(surprise).__name__, notification_id=named
        )
        return None


async def _look(ground: Ground, claimed: Claimed, record: SendingRecord | None, now: Instant) -> Concluded:
    """Decide about a suspect, and do what was decided."""
    settings: RecoverySettings = ground.settings
    standing = claimed.standing
    found = stuck(standing, _thresholds(settings), now)
    if found is None:
        return Retried(standing.id) if claimed.was_retried else Cleared(standing.id)
    app = ground.config.apps.get(standing.app)
    rules = RetryRules() if app is None else app.retry
    policy = rules.policy_for(standing.retry_policy, standing.urgency, ErrorClass.TRANSIENT)
    decision = decide(
        found,
        record,
        max_retries=policy.max_retries,
        may_retry=settings.auto_retry,
        was_retried=claimed.was_retried,
    )
    match decision:
        case Heal(remedy, why):
            return await _heal(ground, found, remedy, why, record, now)
        case Raise(reason):
            return await _heal(ground, found, Remedy.LOOK, reason, record, now)
        case _:
            assert_never(decision)


async def _heal(
    ground: Ground, found: Stuck, remedy: Remedy, why: str, record: SendingRecord | None, now: Instant
) -> Concluded:
    """Apply a remedy, or look whether anybody has it: what a worker has is not stuck."""
    standing = found.standing
    try:
        (answer,) = await ground.work.amend([Recover(standing.app, standing.id, remedy, why)], now)
    except Unavailable:
        return _alert(found, why + NO_ANSWER, record, now)
    match answer:
        case TooLate() | NotOpen():
            return Cleared(standing.id)
        case Recovered() if remedy is Remedy.LOOK:
            return _alert(found, why, record, now)
        case Recovered():
            _tell_recovered(ground, answer, standing.app, standing.id, remedy, why)
            return Retried(standing.id) if remedy is Remedy.AGAIN else Cleared(standing.id)
        case _:
            raise AssertionError("a remedy is answered as one")


def _alert(found: Stuck, reason: str, record: SendingRecord | None, now: Instant) -> Alert:
    standing = found.standing
    return Alert(
        standing.app,
        standing.id,
        found.type,
        reason,
        None if record is None else record.status.value,
        standing.status.value,
        standing.retries if record is None else max(standing.retries, record.retry_count),
        now,
    )


def _thresholds(settings: RecoverySettings) -> Thresholds:
    return Thresholds(round(settings.processing_stuck_s * SECOND_MS), round(settings.pending_stuck_s * SECOND_MS))
