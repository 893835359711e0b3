"""Messages of the log, as bytes: msgpack, each with the number of its format."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from waypost.domain.dedup import Claim
from waypost.domain.delivery import OpenTarget
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.time import Instant
from waypost.ports.ledger import Decided

FORMAT = 1
"""The number of the format; new fields need no new one, but what an older reader could not understand does."""


class Task(Struct, frozen=True):
    """A task to deliver: a whole notification, or (of one that was routed) the targets named."""

    notification: Notification
    targets: tuple[OpenTarget, ...] | None = None
    due_at: Instant | None = None
    """The time before which it is not due."""
    condition: str | None = None
    """The condition it is parked under: it may come back before ``due_at`` when that is lifted."""
    claims: tuple[Claim, ...] = ()
    """The dedup keys of what arrives, for the recorder to keep where the store did not hold them."""
    format: int = FORMAT


class SettlementRecord(Struct, frozen=True):
    """A settlement, for the ledger."""

    decided: Decided
    format: int = FORMAT


class TakenBack(Struct, frozen=True):
    """An order to make no further attempt."""

    id: NotificationId
    why: str
    app: AppId | None = None
    """The app that it belongs to: no other takes it back. None: whoever wrote it had looked."""
    format: int = FORMAT


Message = TypeVar("Message", Task, SettlementRecord, TakenBack)


class Unreadable(Exception):
    """The error that a message is none of Waypost's."""


class Newer(Exception):
    """A message of a newer version: it waits for a worker who understands it."""


class _Numbered(Struct):
    format: int


_encoder = msgspec.msgpack.Encoder()
encode = _encoder.encode
_task = msgspec.msgpack.Decoder(Task)
_record = msgspec.msgpack.Decoder(SettlementRecord)
_taken_back = msgspec.msgpack.Decoder(TakenBack)
_numbered = msgspec.msgpack.Decoder(_Numbered)


def key_of(app: AppId, user_id: UserId) -> bytes:
    """Return the key of all messages about one user."""
    return f"{app}/{user_id}".encode()


def task_in(value: bytes) -> Task:
    """Read a task; Unreadable or Newer."""
    return _read(_task, value)


def decided_in(value: bytes) -> Decided:
    """Read a settlement; Unreadable or Newer."""
    return _read(_record, value).decided


def taken_back_in(value: bytes) -> TakenBack:
    """Read a withdrawal; Unreadable or Newer."""
    return _read(_taken_back, value)


def _read(decoder: msgspec.msgpack.Decoder[Message], value: bytes) -> Message:
    try:
        message = decoder.decode(value)
    except msgspec.MsgspecError as broken:
        if _format_of(value) > FORMAT:
            raise Newer from None
        raise Unreadable from broken
    if message.format > FORMAT:
        raise Newer
    return message


def _format_of(value: bytes) -> int:
    try:
        return _numbered.decode(value).format
    except msgspec.MsgspecError:
        return 0
