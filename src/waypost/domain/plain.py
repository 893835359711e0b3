"""The plain submission: texts and data for one user, and nothing else that needs a decision. Most are.

Its draft is the one that `drafting.draft` makes, to the last field, by a shorter way. Whatever asks for more, or may be
wrong, is left to that: it alone refuses, and says why. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from waypost.domain.channel_steps import ChannelStep, steps_of
from waypost.domain.claims import claims_of
from waypost.domain.content import Content, Kind
from waypost.domain.drafting import ContentCheck, Draft, SpecialCheck, encode_content
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId
from waypost.domain.notification import Notification, lane_of
from waypost.domain.storable import why_unstorable
from waypost.domain.submission import SCHEDULE_LIMIT_MS, STORED_LIMIT_BYTES, Defaults, Submission
from waypost.domain.time import SECOND_MS, Instant, from_datetime, later

SPECIAL: Final = (
    *("to", "device", "device_ids", "kind", "actions", "send_at", "overrides", "push_type", "retry_policy"),
    *("channels", "webhook_url", "variants", "holdout", "template", "variables", "locale"),
)
"""The fields that a plain submission leaves as they are."""
_special = attrgetter(*SPECIAL)
_UNSAID = _special(Submission())


def draft_plain(
    submissions: Sequence[Submission],
    ids: Sequence[NotificationId],
    app: AppId,
    caller: CallerId,
    defaults: Defaults,
    now: Instant,
    checks: Sequence[ContentCheck] = (),
) -> list[Draft | None]:
    """Draft those of *submissions* that are plain, under their *ids*; None stands for those that `draft` decides."""
    common = [check for check in checks if type(check) is not SpecialCheck]
    made: list[Draft | None] = []
    for submission, id_ in zip(submissions, ids, strict=True):
        steps = defaults.channels_of(submission.type)
        content = _content(submission, steps_of(steps) if steps else ())
        if content is None or any([check(content, Kind.VISIBLE) for check in (checks if steps else common)]):
            made.append(None)
            continue
        made.append(_draft(submission, content, id_, app, caller, defaults, now))
    return made


def _content(submission: Submission, channels: tuple[ChannelStep, ...]) -> Content | None:
    """Build the content of a plain submission; None for any other, and for what must be refused."""
    data, tags = submission.data, submission.tags
    is_plain = submission.user_id is not None and (submission.title or submission.body)
    if not is_plain or _special(submission) != _UNSAID or (data and why_unstorable(data)):
        return None
    return Content(
        submission.title,
        submission.subtitle,
        submission.body,
        data,
        submission.image,
        submission.icon,
        submission.link,
        sound=submission.sound,
        badge=submission.badge,
        category=submission.category,
        thread=submission.thread,
        android_channel=submission.android_channel,
        collapse_key=submission.collapse_key,
        channels=channels,
        type=submission.type,
        tags=tuple(dict.fromkeys(tags)) if tags else (),
        campaign=submission.campaign,
    )


def _draft(
    submission: Submission,
    content: Content,
    notification_id: NotificationId,
    app: AppId,
    caller: CallerId,
    defaults: Defaults,
    now: Instant,
) -> Draft | None:
    """Draft a plain submission; None where it is too large, or for a time too far away."""
    user_id = UserId(submission.user_id or "")
    due_at = None if submission.scheduled_at is None else from_datetime(submission.scheduled_at)
    stored = encode_content(content)
    if len(stored) + len(user_id) > STORED_LIMIT_BYTES or (due_at is not None and due_at > now + SCHEDULE_LIMIT_MS):
        return None
    due_at = None if due_at is None or due_at <= now else due_at
    ttl_ms = (defaults.ttl_of(submission.type) if submission.ttl is None else submission.ttl) * SECOND_MS
    notification = Notification(
        notification_id,
        app,
        caller,
        user_id,
        content,
        now,
        later(due_at or now, ttl_ms),
        ttl_ms,
        lane_of(Kind.VISIBLE, submission.urgency),
        Kind.VISIBLE,
        submission.urgency,
        submission.guarantee,
        (),
        due_at,
    )
    return Draft(notification, claims_of(submission, notification, defaults, now), content, stored)
