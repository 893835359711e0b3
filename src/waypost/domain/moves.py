"""Moves: what one change did to a notification or a delivery, as the journal tells it."""

from __future__ import annotations

from msgspec import Struct

from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant


class DeliveryMoved(Struct, frozen=True, array_like=True, tag=True):
    """A delivery changed: from, to and why."""

    app: AppId
    notification_id: NotificationId
    user_id: UserId
    n: int
    device_id: DeviceId
    attempt: int
    before: DeliveryStatus
    after: DeliveryStatus
    at: Instant
    code: str | None = None
    reason: str | None = None
    gone_since: Instant | None = None
    """Set where the token is dead: what was registered with it before this instant goes."""
    token_hash: bytes | None = None
    is_use: bool = False
    """The device was sent to, and the registry was not told so lately."""


class NotificationMoved(Struct, frozen=True, array_like=True, tag=True):
    """A notification changed; a move into a final status is its one ``finished`` event of the round."""

    app: AppId
    notification_id: NotificationId
    user_id: UserId
    before: NotificationStatus | None
    """None where it is stored for the first time."""
    after: NotificationStatus
    at: Instant
    reason: str | None = None


Moved = DeliveryMoved | NotificationMoved
