"""Device events: what an app reports of a notification that reached it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.domain.words import Words


class EventKind(Words):
    """The kind of what a device reports."""

    DELIVERED = "delivered"
    """It came to the device."""
    DISPLAYED = "displayed"
    """It was shown."""
    OPENED = "opened"
    """The user tapped it."""
    DISMISSED = "dismissed"
    """The user swiped it away."""
    ACTION = "action"
    """The user pressed one of its buttons."""

    @property
    def status(self) -> DeliveryStatus:
        """The status that it confirms."""
        is_opened = self in (EventKind.OPENED, EventKind.ACTION)
        return DeliveryStatus.OPENED if is_opened else DeliveryStatus.DELIVERED


class DeviceEvent(Struct, frozen=True):
    """A report of a device: recorded once for each target, kind and action."""

    notification_id: NotificationId
    n: int
    """The number of the target."""
    kind: EventKind
    at: Instant
    action: str = ""
    """The id of the button that was pressed."""


class Reported(Struct, frozen=True):
    """The target that a receipt token stands for."""

    notification_id: NotificationId
    n: int


ID_BYTES: Final = 16
MAC_BYTES: Final = 11
"""88 bits of HMAC-SHA256: RFC 2104 section 5 wants at least 80."""
TOKEN_LENGTH: Final = 38
"""The characters of a receipt token: base64url of the id, the target's number and the MAC."""


def receipt_token(secret: bytes, app: AppId, notification_id: NotificationId, n: int) -> str:
    """Sign a target: who has the token may report of it, and of nothing else."""
    named = notification_id + bytes((n,))
    return base64.urlsafe_b64encode(named + _mac(secret, app, named)).rstrip(b"=").decode()


def read_receipt_token(secret: bytes, app: AppId, token: str) -> Reported | None:
    """Return the target that *token* stands for; None where nobody here signed it for this app."""
    if len(token) != TOKEN_LENGTH or not token.isascii():
        return None
    try:
        raw = base64.b64decode(token + "==", altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    named, mac = raw[: ID_BYTES + 1], raw[ID_BYTES + 1 :]
    if not hmac.compare_digest(mac, _mac(secret, app, named)):
        return None
    return Reported(NotificationId(named[:ID_BYTES]), named[ID_BYTES])


def _mac(secret: bytes, app: AppId, named: bytes) -> bytes:
    return hmac.digest(secret, b"receipt\0" + app.encode() + b"\0" + named, hashlib.sha256)[:MAC_BYTES]
