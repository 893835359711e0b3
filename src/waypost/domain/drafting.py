"""Drafting: from a submission to the notification and the dedup keys that it claims. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from waypost.domain.audience import Audience
from waypost.domain.best_time import Habits, best_time, is_best
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelName, ChannelStep, SubmittedStep, step_faults, steps_of
from waypost.domain.claims import claims_of
from waypost.domain.content import Action, Content, Kind, TemplateUse
from waypost.domain.dedup import Claim
from waypost.domain.device import Device, Registration
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.local_time import UTC_NAME, instant_at, parse_local
from waypost.domain.notification import Notification, lane_of
from waypost.domain.personal import of_variant
from waypost.domain.submission import (
    SCHEDULE_LIMIT_MS,
    STORED_LIMIT_BYTES,
    Defaults,
    Submission,
    faults,
    variant_faults,
)
from waypost.domain.time import SECOND_MS, Instant, from_datetime, later
from waypost.domain.variants import VARIED, Split, Variant, variant_for

ContentCheck = Callable[[Content, Kind], list[Fault]]
"""The check for what one channel could never send, such as a reserved key."""


class SpecialCheck(Struct, frozen=True):
    """A check that finds nothing in what is plain (domain/plain), and is not asked there."""

    check: ContentCheck

    def __call__(self, content: Content, kind: Kind) -> list[Fault]:
        """See ContentCheck."""
        return self.check(content, kind)


class KeysCheck(SpecialCheck, frozen=True):
    """A check that of what is plain looks at the keys of data alone: asked there once for all that have the same."""


class Draft(Struct, frozen=True):
    """A checked submission as a notification, with the keys it claims."""

    notification: Notification
    claims: tuple[Claim, ...]
    content: Content
    """The content with all of its variants; that of the notification is the user's alone."""


def draft(  # noqa: PLR0913 - all that decides what becomes of a submission
    submission: Submission,
    notification_id: NotificationId,
    app: AppId,
    caller: CallerId,
    defaults: Defaults,
    now: Instant,
    checks: Sequence[ContentCheck] = (),
    device: Device | Registration | None = None,
    *,
    template: TemplateUse | None = None,
    zone: str = UTC_NAME,
    habits: Habits = (),
) -> Draft:
    """Make the notification that a submission asks for; InvalidRequest carries every fault found.

    *checks* are those of the channels that its app can send through; *device* is the one that it names by its token;
    *template* what it says by one; *zone* is the one in which a local time is meant, by *habits* the best one.
    """
    found = [*variant_faults(submission), *_faults_of_all(submission)]
    due_at = None if found else _due_at(submission, zone, habits, now)
    if due_at is not None and due_at > later(now, SCHEDULE_LIMIT_MS):
        found.append(Fault("scheduled_at" if submission.send_at is None else "send_at", TOO_FAR))
    found += step_faults(submission.channels, _ttl_s(submission, defaults))
    content = _content(submission, () if found else steps_of(_channels(submission, defaults)), template)
    for said in contents_of(content):
        found += [fault for check in checks for fault in check(said, submission.kind) if fault not in found]
    if found:
        raise InvalidRequest(tuple(found))
    notification = _notification(
        submission, content, notification_id, app, caller, _times(submission, defaults, now, due_at), device
    )
    stored_bytes = stored_size(notification.content, notification.user_id)
    if stored_bytes > STORED_LIMIT_BYTES:
        why = f"{stored_bytes} bytes as stored, at most {STORED_LIMIT_BYTES}"
        raise InvalidRequest((Fault("", why),), ErrorCode.TOO_LARGE)
    return Draft(notification, claims_of(submission, notification, defaults, now), content)


def contents_of(content: Content) -> Sequence[Content]:
    """List what *content* may say: of each of its variants."""
    if content.split is None:
        return (content,)
    return [of_variant(content, each.name) for each in content.split.variants]


def _faults_of_all(submission: Submission) -> list[Fault]:
    """List what is wrong with a submission as each of its variants says it."""
    if not submission.variants:
        return faults(submission)
    found: list[Fault] = []
    for each in submission.variants:
        texts = {name: text for name in VARIED if (text := getattr(each, name)) is not None}
        said = faults(msgspec.structs.replace(submission, **texts))
        found += [fault for fault in said if fault not in found]
    return found


TOO_FAR: Final = "more than 366 days ahead"
_encode = msgspec.msgpack.Encoder().encode


def stored_size(content: Content, user_id: UserId) -> int:
    """Return what counts against the limit of what is stored, bytes."""
    return len(_encode(content)) + len(user_id)


def _notification(
    submission: Submission,
    content: Content,
    notification_id: NotificationId,
    app: AppId,
    caller: CallerId,
    times: _Times,
    device: Device | Registration | None,
) -> Notification:
    user_id = _user_of(submission, content, device)
    if content.split is not None:
        content = of_variant(content, variant_for(content.split, content.campaign or "", user_id))
    return Notification(
        id=notification_id,
        app=app,
        caller=caller,
        user_id=user_id,
        content=content,
        created_at=times.created_at,
        expires_at=later(times.scheduled_at or times.created_at, times.ttl_ms),
        ttl_ms=times.ttl_ms,
        lane=lane_of(submission.kind, submission.urgency),
        kind=submission.kind,
        urgency=submission.urgency,
        guarantee=submission.guarantee,
        device_ids=tuple(map(DeviceId, submission.device_ids)) if device is None else (device.device_id,),
        scheduled_at=times.scheduled_at,
        retry_policy=submission.retry_policy,
    )


class _Times(Struct, frozen=True):
    created_at: Instant
    scheduled_at: Instant | None
    ttl_ms: int


def _times(submission: Submission, defaults: Defaults, now: Instant, due_at: Instant | None) -> _Times:
    return _Times(now, None if due_at is None or due_at <= now else due_at, _ttl_s(submission, defaults) * SECOND_MS)


def _ttl_s(submission: Submission, defaults: Defaults) -> int:
    return defaults.ttl_of(submission.type) if submission.ttl is None else submission.ttl


def _due_at(submission: Submission, zone: str, habits: Habits, now: Instant) -> Instant | None:
    if submission.send_at is not None and is_best(submission.send_at):
        return best_time(submission.send_at, habits, zone, now).at
    if submission.send_at is not None:
        return instant_at(parse_local(submission.send_at), zone)
    return None if submission.scheduled_at is None else from_datetime(submission.scheduled_at)


def _user_of(submission: Submission, content: Content, device: Device | Registration | None) -> UserId:
    if device is not None:
        return device.user_id
    return UserId(submission.user_id or (content.to.label if content.to is not None else ""))


def _channels(submission: Submission, defaults: Defaults) -> Sequence[ChannelName | SubmittedStep]:
    """Return the channels to send by; the app's own, unless it is said where it goes."""
    is_addressed = submission.to is not None or submission.device is not None or submission.device_ids
    return submission.channels or (() if is_addressed else defaults.channels_of(submission.type))


def _content(submission: Submission, channels: tuple[ChannelStep, ...], template: TemplateUse | None) -> Content:
    to = submission.to
    return Content(
        title=submission.title,
        subtitle=submission.subtitle,
        body=submission.body,
        data=submission.data,
        image=submission.image,
        icon=submission.icon,
        link=submission.link,
        actions=tuple([Action(action.id, action.title, action.link, action.icon) for action in submission.actions]),
        sound=submission.sound,
        badge=submission.badge,
        category=submission.category,
        thread=submission.thread,
        android_channel=submission.android_channel,
        collapse_key=submission.collapse_key,
        overrides=submission.overrides,
        push_type=submission.push_type,
        to=None if to is None else Audience(Channel(to.channel), to.kind, to.name),
        channels=channels,
        type=submission.type,
        webhook_url=submission.webhook_url,
        tags=tuple(dict.fromkeys(submission.tags)),
        campaign=submission.campaign,
        split=_split(submission),
        template=template,
    )


def _split(submission: Submission) -> Split | None:
    if not submission.variants:
        return None
    variants = (Variant(**msgspec.structs.asdict(each)) for each in submission.variants)
    return Split(tuple(variants), submission.holdout)
