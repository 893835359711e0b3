"""Decoding of requests, or an error that names the wrong field: the same words at every entry point."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.entrypoints.wording import fault_of

T = TypeVar("T")
_CUT = "empty, or JSON that ends too early"


def decode(decoder: msgspec.json.Decoder[T], body: bytes | Raw, at: str = "") -> T:
    """Read a body; InvalidRequest names the field at fault, or the position where it stops being JSON."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest((fault_of(error, decoder.type, at),)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest((Fault(at, _json_fault(error)),), ErrorCode.INVALID_JSON) from None
    except RecursionError:
        raise InvalidRequest((Fault(at, "nested too deeply"),), ErrorCode.INVALID_JSON) from None


def checked(kind: Any, value: str, at: str) -> Any:
    """Convert a string from a path, query or header to *kind*; InvalidRequest names it by *at*."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest((fault_of(error, kind, at),)) from None


def _json_fault(error: Exception) -> str:
    """Give the position, not the content: the text of a UnicodeDecodeError would quote bytes."""
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    return _CUT if str(error) == "Input data was truncated" else str(error)
