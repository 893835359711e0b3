"""Moves: the effects of one change on a notification or a delivery, as the journal tells them."""

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
    """The instant before which what is registered with the dead token goes; None where the token is not dead."""
    token_hash: bytes | None = None
    is_use: bool = False
    """Whether the device was sent to, and the registry was not told so lately."""


class NotificationMoved(Struct, frozen=True, array_like=True, tag=True):
    """A notification changed; a move into a final status is its one ``finished`` event of the round."""

    app: AppId
    notification_id: NotificationId
    user_id: UserId
    before: NotificationStatus | None
    """The status before; None where it is stored for the first time."""
    after: NotificationStatus
    at: Instant
    reason: str | None = None


class ActionTaken(Struct, frozen=True, array_like=True, tag=True):
    """A button of a notification was pressed; it changes no status, since what has buttons was opened by that."""

    notification_id: NotificationId
    n: int
    """The number of the target."""
    at: Instant


Moved = DeliveryMoved | NotificationMoved
