"""Claims: the dedup keys that a submission claims, and for how long. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from waypost.domain.dedup import Claim, ClaimKind, body_hash, content_key, idempotency_key, said_key
from waypost.domain.notification import Notification
from waypost.domain.submission import ContentSubmission, Defaults, Submission
from waypost.domain.time import SECOND_MS, Instant, later

_NOTIFY_WINDOW_S: Final = 86_400
"""The window of the notify API, seconds (requirements S1-79)."""
IDEMPOTENCY_WINDOW_MS: Final = 86_400 * SECOND_MS
"""Milliseconds for which a caller's own key is kept, whatever the TTL."""


def claims_of(
    submission: Submission, notification: Notification, defaults: Defaults, now: Instant
) -> tuple[Claim, ...]:
    """List the keys that *submission* claims for its *notification*: the caller's own, and that of what it says."""
    own = submission.idempotency_key
    may_have_window = submission.dedup_window is not None or defaults.has_windows
    if own is None:
        if not may_have_window and not _is_of_notify(submission):
            return ()
        window_ms = _window_ms(submission, notification, defaults, now)
        if window_ms <= 0:
            return ()
        return (Claim(ClaimKind.CONTENT, _content_key(submission, notification), b"", later(now, window_ms)),)
    unkeyed = replace(submission, idempotency_key=None)
    digest = body_hash(unkeyed)
    key = idempotency_key(notification.app, notification.caller, own)
    claimed = Claim(ClaimKind.IDEMPOTENCY, key, digest, later(now, IDEMPOTENCY_WINDOW_MS))
    window_ms = _window_ms(submission, notification, defaults, now) if may_have_window else 0
    if window_ms <= 0:
        return (claimed,)
    said = Claim(ClaimKind.CONTENT, _content_key(unkeyed, notification), digest, later(now, window_ms))
    return (claimed, said)


def keys_of(submission: Submission, notification: Notification) -> list[bytes]:
    """List the dedup keys that *submission* may have claimed, by whichever API and with whatever window."""
    keys = [
        _content_key(submission, notification),
        content_key(notification.app, notification.caller, notification.user_id, notification.content),
    ]
    if submission.idempotency_key is not None:
        keys.append(idempotency_key(notification.app, notification.caller, submission.idempotency_key))
    return keys


def _content_key(submission: Submission, notification: Notification) -> bytes:
    if _is_of_notify(submission):
        return content_key(notification.app, notification.caller, notification.user_id, notification.content)
    said = submission
    if said.idempotency_key is not None or said.dedup_window is not None:
        said = replace(said, idempotency_key=None, dedup_window=None)
    return said_key(notification.app, notification.caller, said)


def _window_ms(submission: Submission, notification: Notification, defaults: Defaults, now: Instant) -> int:
    return min(_window_s(submission, defaults) * SECOND_MS, notification.expires_at - now)


def _window_s(submission: Submission, defaults: Defaults) -> int:
    """Return the window asked for, seconds; at the notify API a key of the caller tells repeats alone."""
    if submission.dedup_window is not None:
        return submission.dedup_window
    if not _is_of_notify(submission):
        return defaults.window_s(submission.type)
    return 0 if submission.idempotency_key is not None else defaults.window_s(submission.type, _NOTIFY_WINDOW_S)


def _is_of_notify(submission: Submission) -> bool:
    """Tell whether it came by the notify API, whose windows and keys are its own."""
    return isinstance(submission, ContentSubmission)
