"""The answers of gRPC, made from what the domain knows."""

from __future__ import annotations

from google.protobuf import timestamp_pb2

from waypost.domain.delivery import Receipt
from waypost.domain.ids import format_id
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.entrypoints.submitting import Submitted
from waypost.ports.views import NotificationDetail
from waypost.v1 import notifications_pb2 as pb


def submitted(answer: Submitted) -> pb.Submitted:
    """Build the answer to an accepted submission, or to one that repeats an earlier one."""
    return pb.Submitted(
        id=answer.id,
        status=f"NOTIFICATION_STATUS_{answer.status.upper()}",
        content_hash=answer.content_hash,
        deduplicated=answer.deduplicated,
        record_id=answer.record_id,
    )


def notification(detail: NotificationDetail) -> pb.Notification:
    """Build the answer to a request for one notification."""
    record, told = detail.record, detail.record.notification
    return pb.Notification(
        id=format_id(told.id),
        status=f"NOTIFICATION_STATUS_{record.status.upper()}",
        user_id=told.user_id,
        caller=told.caller,
        kind=f"KIND_{told.kind.upper()}",
        urgency=f"URGENCY_{told.urgency.upper()}",
        guarantee=f"GUARANTEE_{told.guarantee.upper()}",
        created_at=_stamp(told.created_at),
        expires_at=_stamp(told.expires_at),
        scheduled_at=_stamp(told.scheduled_at),
        finished_at=_stamp(record.finished_at),
        reason=record.reason,
        duplicate_of=None if record.duplicate_of is None else format_id(record.duplicate_of),
        round=record.round,
        receipts=[_receipt(each) for each in detail.receipts],
    )


def _receipt(receipt: Receipt) -> pb.Receipt:
    """Build a receipt; one that may be on the wire reads as pending until its deadline."""
    status = DeliveryStatus.PENDING if receipt.is_intent else receipt.status
    return pb.Receipt(
        n=receipt.n,
        device_id=receipt.device_id,
        channel=receipt.channel,
        status=f"DELIVERY_STATUS_{status.upper()}",
        attempts=receipt.attempt,
        provider_id=receipt.provider_id,
        code=receipt.code,
        reason=receipt.reason,
        next_retry_at=_stamp(None if receipt.is_intent or receipt.parked else receipt.due_at),
        sent_at=_stamp(receipt.sent_at),
        resolved_at=_stamp(receipt.resolved_at),
    )


def _stamp(instant: Instant | None) -> timestamp_pb2.Timestamp | None:
    if instant is None:
        return None
    stamp = timestamp_pb2.Timestamp()
    stamp.FromMilliseconds(instant)
    return stamp
