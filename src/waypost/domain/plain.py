"""The plain submission: texts and data for one user, and nothing else that needs a decision. Most are.

Its draft is the one that `drafting.draft` makes, to the last field, by a shorter way. Whatever asks for more, or may be
wrong, is left to that: it alone refuses, and says why. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct

from waypost.domain.channel_steps import ChannelStep, steps_of
from waypost.domain.claims import claims_of
from waypost.domain.content import Content, Kind
from waypost.domain.drafting import ContentCheck, Draft, KeysCheck, SpecialCheck, stored_size
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


def is_alone(submission: Submission) -> bool:
    """Tell whether it needs reads or writes of its own before it is answered, for which no other is to wait."""
    return submission.user_id is None or submission.collapse_key is not None or _special(submission) != _UNSAID


class Checks(Struct, frozen=True):
    """The checks of an app, sorted by what they look at in plain content."""

    every: tuple[ContentCheck, ...] = ()
    common: tuple[ContentCheck, ...] = ()
    """Those that look at anything."""
    of_keys: tuple[ContentCheck, ...] = ()
    """Those that look at the keys of data alone."""


def checks_of(checks: Sequence[ContentCheck]) -> Checks:
    """Sort *checks*."""
    common = [check for check in checks if not isinstance(check, SpecialCheck)]
    of_keys = [check.check for check in checks if isinstance(check, KeysCheck)]
    return Checks(tuple(checks), tuple(common), tuple(of_keys))


def draft_plain(
    submissions: Sequence[Submission],
    ids: Sequence[NotificationId],
    app: AppId,
    caller: CallerId,
    defaults: Defaults,
    now: Instant,
    checks: Checks,
) -> list[Draft | None]:
    """Draft those of *submissions* that are plain, under their *ids*; None stands for those that `draft` decides."""
    batch = _Batch(app, caller, defaults, now, checks)
    return [batch.draft(submission, id_) for submission, id_ in zip(submissions, ids, strict=True)]


class _Batch:
    """The facts that are the same for all submissions of a batch, found out once."""

    def __init__(self, app: AppId, caller: CallerId, defaults: Defaults, now: Instant, checks: Checks) -> None:
        self._app = app
        self._caller = caller
        self._defaults = defaults
        self._now = now
        self._checks = checks
        self._good: set[tuple[str, ...]] = set()
        """The keys of data in which no check of keys found anything."""
        self._usual: dict[str | None, tuple[tuple[ChannelStep, ...], int]] = {}
        """The app's own channels and time to live in seconds, by type."""

    def draft(self, submission: Submission, id_: NotificationId) -> Draft | None:
        """Draft a plain submission; None for any other, and for what must be refused."""
        kind = submission.type
        usual = self._usual.get(kind)
        if usual is None:
            defaults = self._defaults
            usual = self._usual[kind] = steps_of(defaults.channels_of(kind)), defaults.ttl_of(kind)
        steps, usual_ttl_s = usual
        content = _content(submission, steps)
        if content is None or self._is_refused(content):
            return None
        user_id, now = UserId(submission.user_id or ""), self._now
        if stored_size(content, user_id) > STORED_LIMIT_BYTES:
            return None
        due_at = None if submission.scheduled_at is None else from_datetime(submission.scheduled_at)
        if due_at is not None and due_at > now + SCHEDULE_LIMIT_MS:
            return None
        if due_at is not None and due_at <= now:
            due_at = None
        ttl_ms = (usual_ttl_s if submission.ttl is None else submission.ttl) * SECOND_MS
        notification = Notification(
            id_,
            self._app,
            self._caller,
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
        return Draft(notification, claims_of(submission, notification, self._defaults, now), content)

    def _is_refused(self, content: Content) -> bool:
        """Tell whether a check finds something; where the app itself names channels, all are asked."""
        checks = self._checks
        if content.channels:
            return _finds(checks.every, content)
        if content.data and checks.of_keys and (keys := tuple(content.data)) not in self._good:
            if _finds(checks.of_keys, content):
                return True
            self._good.add(keys)
        return bool(checks.common) and _finds(checks.common, content)


def _finds(checks: Sequence[ContentCheck], content: Content) -> bool:
    return any([check(content, Kind.VISIBLE) for check in checks])


def _content(submission: Submission, channels: tuple[ChannelStep, ...]) -> Content | None:
    """Build the content of a plain submission; None for any other, and for what no store could keep."""
    data, tags = submission.data, submission.tags
    if submission.user_id is None or not (submission.title or submission.body) or _special(submission) != _UNSAID:
        return None
    if data and why_unstorable(data):
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
