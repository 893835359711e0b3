"""Decoding of requests, or an error that names the wrong field: the same words at every entry point."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], body: bytes | Raw, at: str = "") -> T:
    """Read a body; InvalidRequest names the field at fault, or the position where it stops being JSON."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest((fault_of(error, at),)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest((Fault(at, _json_fault(error)),), ErrorCode.INVALID_JSON) from None
    except RecursionError:
        raise InvalidRequest((Fault(at, "nested too deeply"),), ErrorCode.INVALID_JSON) from None


def checked(kind: Any, value: str, at: str) -> Any:
    """Convert a string from a path, query or header to *kind*; InvalidRequest names it by *at*."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest((fault_of(error, at),)) from None


_AT = re.compile(r" - at `(?:key` in `)?\$(.*)`$", re.DOTALL)
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`$", re.DOTALL)


def fault_of(error: msgspec.ValidationError, at: str = "") -> Fault:
    """Say where a value is wrong and why, without the value that was sent."""
    text = str(error)
    found = _AT.search(text)
    where = found[1].lstrip(".") if found else ""
    why = text[: found.start()] if found else text
    field = _FIELD.fullmatch(why)
    if field:
        where = f"{where}.{field[2]}" if where else field[2]
        why = "required" if field[1].startswith("missing") else "unknown field"
    return Fault(".".join(part for part in (at, where) if part).replace(".[", "["), without_value(why))


def without_value(why: str) -> str:
    """Remove the value that was sent from the reason, which only this one quotes."""
    return "not one of the values allowed here" if why.startswith("Invalid enum value") else why


def _json_fault(error: Exception) -> str:
    """Give the position, not the content: the text of a UnicodeDecodeError would quote bytes."""
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    return str(error)
