"""Cursors: where a page ended, as opaque text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.domain.ids import NotificationId

_ID_BYTES = 16
_NUMBER_BYTES = 8
_MIDDLE = 1 << 62
"""The cursor's number of the place 0."""
_SIGN = 0x80
"""The highest bit of a number's first byte."""


def of_notification(notification_id: NotificationId) -> str:
    """Make a cursor after this notification."""
    return of_id(notification_id)


def of_id(last_id: bytes) -> str:
    """Make a cursor after whatever has this id of 16 bytes."""
    return _text(last_id)


def of_target(notification_id: NotificationId, n: int) -> str:
    """Make a cursor after this target of a notification."""
    return _text(notification_id + n.to_bytes(4, "big"))


def of_number(number: int) -> str:
    """Make a cursor after whatever has this number."""
    return _text(number.to_bytes(_NUMBER_BYTES, "big"))


def of_place(place: int) -> str:
    """Make a cursor after this place of a feed, which may be below 0."""
    return of_number(place + _MIDDLE)


def place(cursor: str) -> int:
    """Read the place of a feed a page ended with; InvalidRequest where *cursor* was not made here."""
    return number(cursor) - _MIDDLE


def of_text(text_: str) -> str:
    """Make a cursor after whatever has this name."""
    return _text(text_.encode())


def of_name(names: Sequence[str], n: int) -> str | None:
    """Make a cursor after the last of a page of at most *n*; None where nothing follows."""
    return of_text(names[-1]) if len(names) == n else None


def name(cursor: str | None) -> str:
    """Read the name a page ended with, "" without a cursor; InvalidRequest where *cursor* was not made here."""
    return "" if cursor is None else text(cursor)


def text(cursor: str) -> str:
    """Read the text a page ended with; InvalidRequest where *cursor* was not made here."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        read = data.decode()
    except (binascii.Error, ValueError):
        raise _not_ours() from None
    if _text(data) != cursor or "\x00" in read:
        raise _not_ours()
    return read


def number(cursor: str) -> int:
    """Read the number a page ended with; InvalidRequest where *cursor* was not made here."""
    return _number(_bytes(cursor, _NUMBER_BYTES))


def notification(cursor: str) -> NotificationId:
    """Read the notification a page ended with; InvalidRequest where *cursor* was not made here."""
    return NotificationId(_bytes(cursor, _ID_BYTES))


def target(cursor: str) -> tuple[NotificationId, int]:
    """Read the notification and target number a page ended with; InvalidRequest where *cursor* was not made here."""
    data = _bytes(cursor, _ID_BYTES + 4)
    return NotificationId(data[:_ID_BYTES]), _number(data[_ID_BYTES:])


def _number(data: bytes) -> int:
    """Read a number; the stores' are signed, so a larger one was not made here, and none could compare it."""
    if data[0] >= _SIGN:
        raise _not_ours()
    return int.from_bytes(data, "big")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(cursor: str, size: int) -> bytes:
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != size or _text(data) != cursor:
        raise _not_ours()
    return data


def _not_ours() -> InvalidRequest:
    return InvalidRequest((Fault("cursor", "not one of ours; start again without it"),), ErrorCode.INVALID_CURSOR)
