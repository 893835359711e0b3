"""Status words of the APIs that Waypost stands in for: the same states in the words that their callers know.

``requirements.md`` describes those APIs.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.delivery import Receipt
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.words import Words


class Vocabulary(Words):
    """An API whose status words can be asked for."""

    NOTIFICATIONS_SERVICE = "notifications_service"  # on a Redis stream: the status of its log
    NOTIFY = "notify"  # POST /v1/notify
    USER_API = "user_api"  # the calls under /api
    SIMPLENS = "simplens"


class _Said(Struct, frozen=True):
    """The word for one state in each vocabulary; None where it has no word for it."""

    notifications_service: str | None
    notify: str | None
    notify_receipt: str | None
    """The word for receipts: the notify API alone has words of their own for them."""
    user_api: str | None
    simplens: str | None


_SAID: dict[str, _Said] = {
    "pending": _Said("pending", "queued", "pending", "pending", "pending"),
    "scheduled": _Said(None, "queued", None, "scheduled", "pending"),
    "processing": _Said("pending", "dispatched", "pending", "pending", "processing"),
    "sent": _Said("sent", "completed", "sent", "sent", "delivered"),
    "partial": _Said("partial", "completed", None, "sent", "delivered"),
    "delivered": _Said("sent", "completed", "delivered", "delivered", "delivered"),
    "failed": _Said("failed", "failed", "failed", "failed", "failed"),
    "no_targets": _Said("no_tokens", "failed", None, "failed", "failed"),
    "expired": _Said("failed", "failed", "expired", "failed", "failed"),
    "deduplicated": _Said(None, "deduplicated", "deduplicated", None, None),
    "suppressed": _Said("failed", "failed", None, "cancelled", "failed"),
    "opened": _Said("sent", "completed", "delivered", "delivered", "delivered"),
    "cancelled": _Said(None, "failed", None, "cancelled", "failed"),
    "unknown": _Said("failed", "failed", "failed", "failed", "failed"),
}
"""Every status of a notification and of a delivery (table D-T1 of the requirements)."""

_FAILED = "failed"


def notification_word(vocabulary: Vocabulary, status: NotificationStatus, *, waiting: bool = False) -> str | None:
    """Return the word of *vocabulary* for *status*; None where it has none: a duplicate is then shown as the first.

    *waiting* (see ``waits``) is ``failed`` in the user API's words, which retry what failed.
    """
    if vocabulary is Vocabulary.USER_API and waiting:
        return _FAILED
    word: str | None = getattr(_SAID[status], vocabulary)
    return word


def receipt_word(vocabulary: Vocabulary, status: DeliveryStatus) -> str | None:
    """Return the word of *vocabulary* for the status of one delivery; None where it has none."""
    said = _SAID[status]
    word: str | None = said.notify_receipt if vocabulary is Vocabulary.NOTIFY else getattr(said, vocabulary)
    return word


def meant_by(vocabulary: Vocabulary, word: str) -> tuple[NotificationStatus, ...]:
    """Return the statuses of notifications that *vocabulary* calls *word*."""
    return tuple(status for status in NotificationStatus if notification_word(vocabulary, status) == word)


def readable_in(vocabulary: Vocabulary) -> tuple[NotificationStatus, ...]:
    """Return the statuses that *vocabulary* has a word for."""
    return tuple(status for status in NotificationStatus if notification_word(vocabulary, status) is not None)


def waits(receipts: Sequence[Receipt]) -> bool:
    """Tell whether every target was tried without success and waits to be tried again."""
    return bool(receipts) and all(each.status is DeliveryStatus.PENDING and each.attempt for each in receipts)
