"""The FCM message resource as a table of fields, and the violations a message commits against it."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from waypost.lab.fcm_condition import condition_fault

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_DURATION = re.compile(r"(\d{1,12})(\.\d{1,9})?s\Z")
_TOPIC = re.compile(r"[a-zA-Z0-9-_.~%]{1,900}\Z")
_COLOR = re.compile(r"#[0-9a-fA-F]{6}\Z")
_MAX_TTL_S = 2_419_200
_TARGETS = ("token", "fid", "topic", "condition")
_OPAQUE = ("data", "payload", "headers")
"""The maps whose keys are the sender's own words and are left as they are."""


class FieldViolation(msgspec.Struct, frozen=True):
    """One entry of google.rpc.BadRequest."""

    field: str
    description: str


Rule = Callable[[Any], str]
"""A function that says what is wrong with a value; empty when nothing is."""
Schema = dict[str, "Rule | Schema"]


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else "Invalid value (TYPE_STRING)"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "Invalid value (TYPE_BOOL)"


def _number(value: Any) -> str:
    return "" if isinstance(value, int | float) and not isinstance(value, bool) else "Invalid value (TYPE_DOUBLE)"


def _integer(value: Any) -> str:
    return "" if isinstance(value, int) and not isinstance(value, bool) else "Invalid value (TYPE_INT32)"


def _object(value: Any) -> str:
    return "" if isinstance(value, dict) else "Invalid value (TYPE_MESSAGE)"


def _texts(value: Any) -> str:
    fine = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return "" if fine else "Invalid value (repeated TYPE_STRING)"


def _durations(value: Any) -> str:
    fine = isinstance(value, list) and not any(_duration(item) for item in value)
    return "" if fine else "Invalid value (repeated TYPE_MESSAGE), Illegal duration format; duration must end with 's'"


def _text_map(value: Any) -> str:
    if not isinstance(value, dict):
        return "Invalid value (TYPE_MESSAGE)"
    return next((_text(item) for item in value.values() if not isinstance(item, str)), "")


def _one_of(*allowed: str) -> Rule:
    return lambda value: "" if value in allowed else "Invalid value (TYPE_ENUM)"


def _pattern(pattern: re.Pattern[str], text: str) -> Rule:
    return lambda value: "" if isinstance(value, str) and pattern.match(value) else text


def _duration(value: Any) -> str:
    if isinstance(value, str) and _DURATION.match(value):
        return ""
    return "Invalid value (TYPE_MESSAGE), Illegal duration format; duration must end with 's'"


def _ttl(value: Any) -> str:
    if wrong := _duration(value):
        return wrong
    return "" if float(value[:-1]) <= _MAX_TTL_S else "Invalid ttl: must be between 0 and 2419200 seconds"


def _condition(value: Any) -> str:
    return condition_fault(value) if isinstance(value, str) else "Invalid value (TYPE_STRING)"


def _link(value: Any) -> str:
    return "" if isinstance(value, str) and value.startswith("https://") else "Invalid link: must use HTTPS"


_COLOR_PARTS: Schema = {"red": _number, "green": _number, "blue": _number, "alpha": _number}
_NOTIFICATION: Schema = {"title": _text, "body": _text, "image": _text}
_ANDROID_NOTIFICATION: Schema = {
    **_NOTIFICATION,
    "icon": _text, "color": _pattern(_COLOR, "Invalid color: must be in the form #RRGGBB"), "sound": _text,
    "tag": _text, "click_action": _text, "body_loc_key": _text, "body_loc_args": _texts, "title_loc_key": _text,
    "title_loc_args": _texts, "channel_id": _text, "ticker": _text, "sticky": _flag, "event_time": _text,
    "local_only": _flag, "vibrate_timings": _durations, "default_vibrate_timings": _flag, "default_sound": _flag,
    "light_settings": {"color": _COLOR_PARTS, "light_on_duration": _duration, "light_off_duration": _duration},
    "default_light_settings": _flag, "notification_count": _number, "bypass_proxy_notification": _flag,
    "notification_priority": _one_of(
        "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX"
    ),
    "visibility": _one_of("VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"),
    "proxy": _one_of("PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"),
}  # fmt: skip
_ANDROID_COMMON: Schema = {
    "collapse_key": _text, "ttl": _ttl, "restricted_package_name": _text, "data": _text_map, "direct_boot_ok": _flag,
    "fcm_options": {"analytics_label": _text}, "bandwidth_constrained_ok": _flag, "restricted_satellite_ok": _flag,
}  # fmt: skip
_REMOTE: Schema = {
    "notification": {**_ANDROID_NOTIFICATION, "id": _integer}, "mutable_content": _flag,
    "use_as_v1_data_message": _flag,
}  # fmt: skip
_MESSAGE: Schema = {
    "token": _text, "fid": _text, "condition": _condition, "data": _text_map, "notification": _NOTIFICATION,
    "topic": _pattern(_TOPIC, "Invalid topic name"),
    "android": {**_ANDROID_COMMON, "priority": _one_of("NORMAL", "HIGH"), "notification": _ANDROID_NOTIFICATION},
    "android_v2": {**_ANDROID_COMMON, "remote_notification": _REMOTE, "background_sync": {}},
    "apns": {
        "headers": _text_map, "payload": _object, "live_activity_token": _text,
        "fcm_options": {"analytics_label": _text, "image": _text},
    },
    "webpush": {
        "headers": _text_map, "data": _text_map, "notification": _object,
        "fcm_options": {"link": _link, "analytics_label": _text},
    },
    "fcm_options": {"analytics_label": _text},
}  # fmt: skip
_BODY: Schema = {"validate_only": _flag, "message": _MESSAGE}


def normalized(value: Any) -> Any:
    """Give camelCase names their snake_case form; proto-JSON takes either."""
    if not isinstance(value, dict):
        return value
    return {
        (name if name.islower() else _CAMEL.sub(r"_\1", name).lower()): item if name in _OPAQUE else normalized(item)
        for name, item in value.items()
    }


def message_violations(body: dict[str, Any], *, strict: bool) -> list[FieldViolation]:
    """List what is wrong with a send request; *strict* adds the older, wider list of reserved keys."""
    found = list(_walk(body, _BODY, ""))
    message = body.get("message")
    if not isinstance(message, dict):
        return found or [FieldViolation("message", "Message is missing.")]
    targets = sum(name in message for name in _TARGETS)
    if targets != 1:
        text = "Recipient of the message is not set." if not targets else "Only one recipient may be set."
        found.append(FieldViolation("message", text))
    found += _kind_violations(message.get("android_v2"))
    for part in (message, message.get("android"), message.get("android_v2")):
        data = part.get("data") if isinstance(part, dict) else None
        if isinstance(data, dict):
            found += [
                FieldViolation("message.data", f"Invalid data payload key: {key}")
                for key in data
                if _reserved(key, strict=strict)
            ]
    return found


def _kind_violations(android: Any) -> Iterator[FieldViolation]:
    """Check that an `android_v2` block is one of two kinds, and a remote notification shows one with an id."""
    if not isinstance(android, dict):
        return
    if sum(kind in android for kind in ("remote_notification", "background_sync")) != 1:
        text = "Exactly one of remote_notification and background_sync must be set."
        yield FieldViolation("message.android_v2", text)
    remote = android.get("remote_notification")
    if isinstance(remote, dict) and not (
        isinstance(remote.get("notification"), dict) and "id" in remote["notification"]
    ):
        yield FieldViolation("message.android_v2.remote_notification.notification", "Notification with an id required.")


def payload_bytes(message: dict[str, Any]) -> int:
    """Count what counts against the limit: keys and values of data, and the notification's texts, in UTF-8."""
    total = 0
    for part in (message, message.get("android") or {}, message.get("android_v2") or {}):
        for name in ("data", "notification"):
            values = part.get(name)
            if isinstance(values, dict):
                total += sum(len(key.encode()) + len(str(value).encode()) for key, value in values.items())
    return total


def _reserved(key: str, *, strict: bool) -> bool:
    if key in ("from", "message_type") or key.startswith(("google.", "gcm.notification.")):
        return True
    return strict and key.startswith(("google", "gcm"))


def _walk(value: Any, schema: Schema, path: str) -> Iterator[FieldViolation]:
    if not isinstance(value, dict):
        yield FieldViolation(path, f"Invalid value at '{path}' (TYPE_MESSAGE)")
        return
    for name, item in value.items():
        field = f"{path}.{name}" if path else name
        rule = schema.get(name)
        if rule is None:
            text = f"Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field."
            yield FieldViolation(path, text)
        elif isinstance(rule, dict):
            yield from _walk(item, rule, field)
        elif wrong := rule(item):
            yield FieldViolation(field, f"{wrong} at '{field}'")
