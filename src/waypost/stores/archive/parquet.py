"""Notifications as rows of a Parquet file, in the order of their ids, and back.

Columns that people ask about are columns of their own; content and receipts are JSON, so that both come back whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId, format_id, parse_id
from waypost.domain.notification import Guarantee, Lane, Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.archive import LAYOUT
from waypost.ports.views import Marked, NotificationDetail, NotificationRecord

GROUP: Final = 500
"""Rows that are read together at least."""
_MOMENT: Final = pa.timestamp("ms", tz="UTC")
_TEXT: Final = pa.string()
SCHEMA: Final = pa.schema(
    [
        pa.field("id", _TEXT, nullable=False),
        pa.field("app", _TEXT, nullable=False),
        pa.field("user_id", _TEXT, nullable=False),
        pa.field("caller", _TEXT, nullable=False),
        pa.field("status", _TEXT, nullable=False),
        pa.field("reason", _TEXT),
        pa.field("lane", _TEXT, nullable=False),
        pa.field("kind", _TEXT, nullable=False),
        pa.field("urgency", _TEXT, nullable=False),
        pa.field("guarantee", _TEXT, nullable=False),
        pa.field("created_at", _MOMENT, nullable=False),
        pa.field("expires_at", _MOMENT, nullable=False),
        pa.field("scheduled_at", _MOMENT),
        pa.field("finished_at", _MOMENT),
        pa.field("read_at", _MOMENT),
        pa.field("hidden_at", _MOMENT),
        pa.field("ttl_ms", pa.int64(), nullable=False),
        pa.field("round", pa.int32(), nullable=False),
        pa.field("retry_policy", _TEXT),
        pa.field("duplicate_of", _TEXT),
        pa.field("duplicates", pa.list_(_TEXT), nullable=False),
        pa.field("device_ids", pa.list_(_TEXT), nullable=False),
        pa.field("type", _TEXT),
        pa.field("campaign", _TEXT),
        pa.field("variant", _TEXT),
        pa.field("content", _TEXT),
        pa.field("receipts", _TEXT, nullable=False),
    ],
    metadata={"waypost.layout": str(LAYOUT)},
)
_WIDE: Final = frozenset({"content", "receipts", "duplicates"})
_LISTED: Final = [name for name in SCHEMA.names if name not in _WIDE]
"""The columns of what lists show."""
_MOMENTS: Final = frozenset(field.name for field in SCHEMA if field.type == _MOMENT)
_encode = msgspec.json.Encoder().encode
_content = msgspec.json.Decoder(Content).decode
_receipts = msgspec.json.Decoder(tuple[Receipt, ...]).decode


def written(details: Sequence[NotificationDetail], *, with_content: bool = True) -> bytes:
    """Write *details*, which are in the order of their ids, as a file."""
    rows = [_row(each, with_content=with_content) for each in details]
    columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, SCHEMA), sink, row_group_size=GROUP, compression="zstd")
    return bytes(sink.getvalue())


def read(data: bytes) -> list[NotificationDetail]:
    """Read all of a file; a ValueError or an error of pyarrow's where it is none of ours."""
    table = pq.read_table(pa.BufferReader(data), use_threads=False)
    return [_detail(row) for row in _rows(table)]


def ids_in(file: IO[bytes]) -> list[NotificationId]:
    """Read the ids in a file."""
    return [parse_id(row["id"]) for row in _rows(pq.ParquetFile(file).read(["id"], use_threads=False))]


def found(file: IO[bytes], notification_id: NotificationId) -> NotificationDetail | None:
    """Find one notification; of the file is read where its rows lie, and the group that can have it."""
    text, parquet = format_id(notification_id), pq.ParquetFile(file)
    for group in range(parquet.num_row_groups):
        bounds = parquet.metadata.row_group(group).column(0).statistics
        if bounds.min <= text <= bounds.max:
            table = parquet.read_row_group(group, use_threads=False)
            at = pc.index(table["id"], text).as_py()
            if at >= 0:
                return _detail(next(_rows(table.slice(at, 1))))
    return None


def listed(
    file: IO[bytes], user_id: UserId | None, statuses: Sequence[NotificationStatus], before: NotificationId, n: int
) -> list[NotificationRecord]:
    """List at most *n* notifications older than *before*, newest first, without their content."""
    table = pq.ParquetFile(file).read(_LISTED, use_threads=False)
    wanted = pc.less(table["id"], format_id(before))
    if user_id is not None:
        wanted = pc.and_(wanted, pc.equal(table["user_id"], user_id))
    if statuses:
        wanted = pc.and_(wanted, pc.is_in(table["status"], pa.array([str(each) for each in statuses])))
    chosen = table.filter(wanted)
    newest = chosen.slice(max(0, chosen.num_rows - n))
    return [_record(row, Content()) for row in reversed(list(_rows(newest)))]


def _rows(table: Any) -> Iterator[Mapping[str, Any]]:
    """Yield rows with moments as instants."""
    columns = {
        name: (table[name].cast(pa.int64()) if name in _MOMENTS else table[name]).to_pylist()
        for name in table.column_names
    }
    for n in range(table.num_rows):
        yield {name: values[n] for name, values in columns.items()}


def _row(detail: NotificationDetail, *, with_content: bool) -> dict[str, Any]:
    record, made = detail.record, detail.record.notification
    content = made.content
    return {
        "id": format_id(made.id),
        "app": made.app,
        "user_id": made.user_id,
        "caller": made.caller,
        "status": str(record.status),
        "reason": record.reason,
        "lane": str(made.lane),
        "kind": str(made.kind),
        "urgency": str(made.urgency),
        "guarantee": str(made.guarantee),
        "created_at": made.created_at,
        "expires_at": made.expires_at,
        "scheduled_at": made.scheduled_at,
        "finished_at": record.finished_at,
        "read_at": detail.marked.read_at,
        "hidden_at": detail.marked.hidden_at,
        "ttl_ms": made.ttl_ms,
        "round": record.round,
        "retry_policy": made.retry_policy,
        "duplicate_of": None if record.duplicate_of is None else format_id(record.duplicate_of),
        "duplicates": [format_id(each) for each in detail.duplicates],
        "device_ids": list(made.device_ids),
        "type": content.type,
        "campaign": content.campaign,
        "variant": content.variant,
        "content": _encode(content).decode() if with_content else None,
        "receipts": _encode(detail.receipts).decode(),
    }


def _detail(row: Mapping[str, Any]) -> NotificationDetail:
    content = Content(type=row["type"], campaign=row["campaign"], variant=row["variant"])
    return NotificationDetail(
        _record(row, content if row["content"] is None else _content(row["content"])),
        _receipts(row["receipts"]),
        tuple([parse_id(each) for each in row["duplicates"]]),
        Marked(_moment(row["read_at"]), _moment(row["hidden_at"])),
    )


def _record(row: Mapping[str, Any], content: Content) -> NotificationRecord:
    made = Notification(
        id=parse_id(row["id"]),
        app=AppId(row["app"]),
        caller=CallerId(row["caller"]),
        user_id=UserId(row["user_id"]),
        content=content,
        created_at=Instant(row["created_at"]),
        expires_at=Instant(row["expires_at"]),
        ttl_ms=row["ttl_ms"],
        lane=Lane(row["lane"]),
        kind=Kind(row["kind"]),
        urgency=Urgency(row["urgency"]),
        guarantee=Guarantee(row["guarantee"]),
        device_ids=tuple([DeviceId(each) for each in row["device_ids"]]),
        scheduled_at=_moment(row["scheduled_at"]),
        retry_policy=row["retry_policy"],
    )
    return NotificationRecord(
        made,
        NotificationStatus(row["status"]),
        _moment(row["finished_at"]),
        row["reason"],
        None if row["duplicate_of"] is None else parse_id(row["duplicate_of"]),
        row["round"],
        archived=True,
    )


def _moment(value: int | None) -> Instant | None:
    return None if value is None else Instant(value)
