"""The journal: what each accept and settle changed, for the reporting stages that tail it."""

from __future__ import annotations

from typing import Protocol

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
    after: NotificationStatus
    at: Instant
    reason: str | None = None


Moved = DeliveryMoved | NotificationMoved


class JournalRow(Struct, frozen=True):
    """One transaction's changes at its position."""

    position: int
    moves: tuple[Moved, ...]


class Journal(Protocol):
    """Tailed by position, at least once, by each reader for itself."""

    async def read(self, after: int, n: int) -> list[JournalRow]:
        """At most *n* rows after a position, in order."""
        ...

    async def position(self, reader: str) -> int:
        """Where *reader* stands; 0 for a new one."""
        ...

    async def advance(self, reader: str, position: int) -> None:
        """Store where *reader* stands."""
        ...

    async def drop_before(self, position: int, n: int) -> int:
        """Delete at most *n* rows before a position; how many it was."""
        ...
