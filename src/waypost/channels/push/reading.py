"""Reading answers field by field, so that one odd field does not hide what the others say."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from msgspec import Raw

_Json = TypeVar("_Json")

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_ .-]{0,63}")
_NAME_LIMIT = 1_000
_texts = msgspec.json.Decoder(str)
_whole_numbers = msgspec.json.Decoder(int)
_numbers = msgspec.json.Decoder(float)
_lists = msgspec.json.Decoder(list[Raw])

NOTHING = Raw(b"")
"""The value of a field that is not there."""


def read_json(decoder: msgspec.json.Decoder[_Json], body: bytes | Raw) -> _Json | None:
    """Decode *body* in the shape of *decoder*; None where it says something else, or nests too deeply to be read."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text_of(field: Raw) -> str:
    """Read a string; "" where the field is something else."""
    return read_json(_texts, field) or ""


def word_of(field: Raw) -> str:
    """Read a provider's code; "" unless it has the form of one, since it goes into receipts, logs and metrics."""
    text = text_of(field)
    return text if _WORD.fullmatch(text) else ""


def name_of(text: str) -> str:
    """Return a provider's name for a message; "" unless it can be stored and shown."""
    return text if len(text) <= _NAME_LIMIT and text.isprintable() else ""


def number_of(field: Raw) -> int | None:
    """Read a number without its fraction; None where the field is something else."""
    whole = read_json(_whole_numbers, field)
    if whole is not None:
        return whole
    number = read_json(_numbers, field)
    return None if number is None else int(number)


def items_of(field: Raw) -> list[Raw]:
    """Read the items of a list; what stands where a list should is taken for its only item."""
    items = read_json(_lists, field)
    return [field] if items is None else items
