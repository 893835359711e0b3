"""A job as producers write it into a Redis stream for the notifications service, in either of its two forms.

The entry's fields are the job's own, or a single field ``payload`` holds the job as JSON. In both, ``data`` is an
object, or its JSON text, and what has no place of its own is data, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest

JOB_LIMIT_BYTES = 64 * 1024
"""Names and values of an entry together; no provider takes a sixteenth of it."""
PAYLOAD = "payload"
_USER = ("userId", "user_id")
_PAYLOAD_FIELD, _USER_FIELDS = PAYLOAD.encode(), frozenset(name.encode() for name in _USER)
_OWN = (*_USER, "channel", "title", "body", "badge", "data")
_BADGE_LIMIT = 99_999


class Job(Struct, frozen=True):
    """A job of a producer: the user to notify and the text."""

    user_id: str
    channel: str | None = None
    """The channel of Android's settings that it is shown in; the app is told it in the data, too."""
    title: str | None = None
    body: str | None = None
    badge: int | None = None
    data: dict[str, Any] = {}
    """Any JSON; of a flat entry, text and what its ``data`` holds."""


def is_payload(fields: Mapping[bytes, bytes]) -> bool:
    """Tell whether the entry has the job as JSON: a field ``payload``, and no user beside it."""
    return _PAYLOAD_FIELD in fields and _USER_FIELDS.isdisjoint(fields)


def read_job(fields: Mapping[bytes, bytes]) -> Job:
    """Read the job in a stream entry; InvalidRequest names what is wrong with it, without its values.

    A user, channel, badge or data that is "" counts as left out, and so does what is ``null`` in JSON.
    """
    size = sum(len(name) + len(value) for name, value in fields.items())
    if size > JOB_LIMIT_BYTES:
        raise InvalidRequest((Fault("", f"{size} bytes, at most {JOB_LIMIT_BYTES}"),), ErrorCode.TOO_LARGE)
    if is_payload(fields):
        return _job(_object(fields[PAYLOAD.encode()], PAYLOAD), f"{PAYLOAD}.")
    given: dict[str, Any] = {_text(name, ""): _text(value, "") for name, value in fields.items()}
    return _job(given, "")


def _job(given: dict[str, Any], at: str) -> Job:
    data = given.get("data")
    if isinstance(data, str):
        data = _object(data.encode(), f"{at}data") if data else None
    if data is not None and not isinstance(data, dict):
        raise InvalidRequest((Fault(f"{at}data", "must be an object"),))
    others = {name: value for name, value in given.items() if name not in _OWN}
    user_id = next((given[name] for name in _USER if given.get(name) not in (None, "")), None)
    if user_id is None:
        raise InvalidRequest((Fault(f"{at}{_USER[0]}", "required"),))
    return Job(
        user_id=_words(user_id, f"{at}{_USER[0]}"),
        channel=_line(given, "channel", at) or None,
        title=_line(given, "title", at),
        body=_line(given, "body", at),
        badge=_badge(given.get("badge"), f"{at}badge"),
        data=others | (data or {}),
    )


def _line(given: dict[str, Any], name: str, at: str) -> str | None:
    value = given.get(name)
    return None if value is None else _words(value, f"{at}{name}")


def _words(value: Any, at: str) -> str:
    """Check that *value* is text; turn a number into its digits, since producers have ids and titles of both kinds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidRequest((Fault(at, "must be text"),))
    if "\x00" in value:
        raise InvalidRequest((Fault(at, "holds a NUL"),))
    return value


def _badge(value: Any, at: str) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(_BADGE_LIMIT)):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _BADGE_LIMIT:
        raise InvalidRequest((Fault(at, f"must be a whole number from 0 to {_BADGE_LIMIT}"),))
    return value


def _object(text: bytes, at: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidRequest((Fault(at, "is not valid JSON"),), ErrorCode.INVALID_JSON) from None
    if not isinstance(value, dict):
        raise InvalidRequest((Fault(at, "must be an object"),))
    return value


def _text(raw: bytes, at: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidRequest((Fault(at, "is not valid UTF-8"),)) from None
