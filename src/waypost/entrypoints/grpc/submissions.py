"""Submissions out of messages, checked by the very types that check JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC
from typing import Any, TypeVar

import msgspec
from google.protobuf import struct_pb2, timestamp_pb2
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import DecodeError, Message

from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.submission import Submission
from waypost.entrypoints.wording import fault_of
from waypost.v1 import notifications_pb2 as pb

M = TypeVar("M", bound=Message)

WHOLE_LIMIT = 1 << 53
"""The largest number up to which a double holds every whole number."""


def parsed(kind: type[M], raw: bytes) -> M:
    """Parse the message in *raw*; InvalidRequest where it is none."""
    try:
        return kind.FromString(raw)
    except DecodeError:
        raise InvalidRequest((Fault("", f"not a message of the type {kind.DESCRIPTOR.full_name}"),)) from None


def submission(message: pb.Submission, at: str = "") -> Submission:
    """Read the submission in *message* as the same JSON would be; InvalidRequest names a faulty field, below *at*."""
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        read = _READERS.get(field.name)
        try:
            said = value if read is None else read(value)
        except ValueError as misfit:
            raise InvalidRequest((Fault(f"{at}.{field.name}" if at else field.name, str(misfit)),)) from None
        if said is not None:
            fields[field.name] = said
    try:
        return msgspec.convert(fields, Submission)
    except msgspec.ValidationError as error:
        raise InvalidRequest((fault_of(error, Submission, at),)) from None


def _given(message: Message) -> dict[str, Any]:
    return {field.name: _given(value) if isinstance(value, Message) else value for field, value in message.ListFields()}


def _word_of(enum: EnumTypeWrapper, prefix: str) -> Callable[[int], str | None]:
    """Build a reader of an enum's values as the domain's words; None for an unset one, "" for an unknown one."""
    words: dict[int, str | None] = {number: name.removeprefix(prefix).lower() for name, number in enum.items()}
    words[0] = None
    return lambda number: words.get(number, "")


def _plain(struct: struct_pb2.Struct) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in struct.fields.items()}


def _plain_value(value: struct_pb2.Value) -> Any:
    """Convert a value to what JSON has: a number without a fraction is an integer. ValueError for what it has not."""
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            return _number(value.number_value)
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return _plain(value.struct_value)
        case "list_value":
            return [_plain_value(each) for each in value.list_value.values]
        case "null_value":
            return None
        case _:
            raise ValueError("holds a value of no kind")


def _number(number: float) -> int | float:
    if not math.isfinite(number):
        raise ValueError("holds a number that JSON has not")
    return int(number) if number.is_integer() and abs(number) <= WHOLE_LIMIT else number


def _moment(stamp: timestamp_pb2.Timestamp) -> Any:
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError("not a point in time") from None


def _overrides(structs: Any) -> dict[str, Any]:
    return {channel: _plain(struct) for channel, struct in structs.items()}


def _each_given(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [_given(each) for each in messages]


_READERS: dict[str, Callable[[Any], Any]] = {
    "to": _given,
    "device": _given,
    "device_ids": list,
    "tags": list,
    "actions": _each_given,
    "channels": _each_given,
    "variants": _each_given,
    "data": _plain,
    "template": _given,
    "variables": _plain,
    "overrides": _overrides,
    "scheduled_at": _moment,
    "kind": _word_of(pb.Kind, "KIND_"),
    "urgency": _word_of(pb.Urgency, "URGENCY_"),
    "guarantee": _word_of(pb.Guarantee, "GUARANTEE_"),
    "push_type": _word_of(pb.PushType, "PUSH_TYPE_"),
}
"""The readers of fields that are not the plain value already."""
