"""The straight way, shorter than the general one and with the same result: taken by the provider at the first attempt.

Most receipts are written once, in this state; so they are made without going through every case of
``domain.settlement.apply``, and their row binds only what differs between them.
"""

from __future__ import annotations

import msgspec

from waypost.adapters.sql.rows import Row
from waypost.domain.delivery import Receipt
from waypost.domain.settlement import Change, Sent
from waypost.domain.status import DeliveryStatus

INSERT_SENT = (
    "INSERT INTO receipt (notification_id, n, device_id, channel, status, attempt, retries, throttles, provider_id,"
    " code, dead, first_attempt_at, last_attempt_at, sent_at, resolved_at, attempts, app, shard)"
    " VALUES (?1, ?2, ?3, ?4, 'sent', 1, 0, 0, ?5, ?6, 0, ?7, ?7, ?8, ?8, ?9, ?10, ?11)"
)

_PENDING = DeliveryStatus.PENDING
_SENT = DeliveryStatus.SENT

_encode = msgspec.msgpack.Encoder().encode


def is_first_and_sent(receipt: Receipt, change: Change) -> bool:
    """Whether *change* is the straight way for *receipt*."""
    return (
        type(change.settlement) is Sent
        and change.attempt == 1
        and receipt.status is _PENDING
        and receipt.attempt == 0
        and change.made is not None
        and receipt.first_attempt_at is None
    )


def first_sent(receipt: Receipt, change: Change) -> Receipt:
    """What ``domain.settlement.apply`` makes of it."""
    made = change.made
    settlement = change.settlement
    assert made is not None
    assert type(settlement) is Sent
    return Receipt(
        receipt.notification_id,
        receipt.n,
        receipt.device_id,
        receipt.channel,
        _SENT,
        attempt=1,
        retries=receipt.retries,
        throttles=receipt.throttles,
        provider_id=settlement.provider_id,
        code=made.code or receipt.code,
        first_attempt_at=made.at,
        last_attempt_at=made.at,
        sent_at=change.at,
        resolved_at=change.at,
        attempts=(*receipt.attempts, made),
    )


def sent_row(receipt: Receipt, app: str, shard: int) -> Row:
    """What INSERT_SENT binds."""
    return (
        receipt.notification_id,
        receipt.n,
        receipt.device_id,
        receipt.channel,
        receipt.provider_id,
        receipt.code,
        receipt.first_attempt_at,
        receipt.sent_at,
        _encode(receipt.attempts),
        app,
        shard,
    )
