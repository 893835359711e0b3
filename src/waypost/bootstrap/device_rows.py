"""Devices as rows of a file: JSON Lines, CSV, or a list of tokens, in the shapes that people have."""

from __future__ import annotations

import csv
import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TextIO

import msgspec
from msgspec import Struct

from waypost.domain.device import Device

FORMATS: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".txt": "tokens"}
"""The format that a file's ending means."""
COLUMNS: Final = (
    "user_id",
    "device_id",
    "platform",
    "token",
    "p256dh",
    "auth",
    "app_version",
    "os_version",
    "locale",
    "token_use",
)
_KEYS: Final = ("p256dh", "auth")
_ALSO: Final = {
    "user": "user_id",
    "uid": "user_id",
    "external_id": "user_id",
    "external_user_id": "user_id",
    "device": "device_id",
    "id": "device_id",
    "player_id": "device_id",
    "subscription_id": "device_id",
    "fcm_token": "token",
    "registration_token": "token",
    "push_token": "token",
    "identifier": "token",
    "endpoint": "token",
    "web_p256": "p256dh",
    "web_auth": "auth",
    "game_version": "app_version",
    "device_os": "os_version",
    "language": "locale",
}
"""Names that other products give to our columns; ``device_type`` and ``invalid_identifier`` are OneSignal's."""
_PLATFORM_OF_TYPE: Final = {"0": "ios", "1": "android", "5": "web", "7": "web", "8": "web", "17": "web"}
_PLATFORM_OF: Final = {"apns": "ios", "fcm": "android", "gcm": "android", "webpush": "web"}
_TRUE: Final = ("t", "true", "1", "yes")


class Row(Struct, frozen=True):
    """A row that names a device: whose it is, its id, and the rest as the API takes it."""

    line: int
    user_id: str
    device_id: str
    fields: dict[str, Any]


class RefusedRow(Struct, frozen=True):
    """A row that names none; *code* is stable."""

    line: int
    code: str
    why: str


class DeadRow(Struct, frozen=True):
    """A row whose token is known to be dead where it comes from."""

    line: int


Read = Row | RefusedRow | DeadRow


def read_rows(file: TextIO, form: str, platform: str | None) -> Iterator[Read]:
    """Read a file row by row, numbered by line; *platform* is that of rows that name none."""
    for line, said in _objects(file, form):
        yield said if isinstance(said, RefusedRow) else _row(line, said, platform)


def _objects(file: TextIO, form: str) -> Iterator[tuple[int, Mapping[str, Any] | RefusedRow]]:
    if form == "csv":
        rows = csv.DictReader(file, strict=True)
        try:
            for row in rows:
                odd = None in row or None in row.values()
                why = f"has not the {len(row)} columns of the first line"
                yield rows.line_num, RefusedRow(rows.line_num, "invalid_row", why) if odd else row
        except csv.Error as error:
            line = rows.reader.line_num
            yield line, RefusedRow(line, "invalid_row", f"{error}; nothing is read behind it")
        return
    for line, text in enumerate(file, 1):
        if stripped := text.strip():
            yield line, {"token": stripped} if form == "tokens" else _object(line, stripped)


def _object(line: int, text: str) -> Mapping[str, Any] | RefusedRow:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return RefusedRow(line, "invalid_row", "not a JSON object")


def _row(line: int, said: Mapping[str, Any], platform: str | None) -> Read:
    found = {_ALSO.get(name, name): value for name, value in _named(said) if value not in (None, "")}
    if any("�" in value for value in found.values() if isinstance(value, str)):
        return RefusedRow(line, "invalid_row", "not UTF-8")
    if str(found.get("invalid_identifier", "")).lower() in _TRUE:
        return DeadRow(line)
    if "token" not in found:
        return RefusedRow(line, "missing_token", "names no token")
    by_token = hashlib.sha256(str(found["token"]).encode()).hexdigest()[:24]
    fields: dict[str, Any] = {
        name: found[name] for name in COLUMNS[2:] if name in found and name not in ("p256dh", "auth")
    }
    keys = {name: found[name] for name in ("p256dh", "auth") if name in found}
    if keys or "keys" in found:
        fields["keys"] = keys or found["keys"]
    fields["platform"] = _platform(found, platform)
    if fields["platform"] is None:
        return RefusedRow(line, "unknown_platform", "names no platform, nor does --platform")
    alone = set(found) <= {"token"}
    user_id = found.get("user_id", f"token-{by_token}" if alone else None)
    if user_id is None:
        return RefusedRow(line, "missing_user", "names no user")
    return Row(line, str(user_id), str(found.get("device_id", f"token-{by_token}")), fields)


def _named(said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in said.items():
        yield name.strip().lower(), value.strip() if isinstance(value, str) else value


def _platform(found: Mapping[str, Any], otherwise: str | None) -> str | None:
    if "platform" in found:
        word = str(found["platform"]).strip().lower()
        return _PLATFORM_OF.get(word, word)
    if "device_type" in found:
        return _PLATFORM_OF_TYPE.get(str(found["device_type"]), f"type {found['device_type']}")
    if isinstance(found.get("keys"), dict):  # PushSubscription.toJSON()
        return otherwise or "web"
    return otherwise


def write_rows(devices: Iterable[Device], file: TextIO, form: str, *, first: bool) -> None:
    """Write devices as ``read_rows`` reads them; the *first* ones of a CSV are below its names."""
    if form == "csv":
        rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if first:
            rows.writeheader()
        rows.writerows(map(_fields_of, devices))
        return
    for device in devices:
        file.write(msgspec.json.encode(_fields_of(device)).decode() + "\n")


def _fields_of(device: Device) -> dict[str, str]:
    fields = {name: getattr(device, name) for name in COLUMNS if name not in _KEYS}
    if device.keys is not None:
        fields |= {"p256dh": _base64url(device.keys.p256dh), "auth": _base64url(device.keys.auth)}
    return {name: str(value) for name, value in fields.items() if value is not None}


def _base64url(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode()
