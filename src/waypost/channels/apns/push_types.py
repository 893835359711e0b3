"""The demands of each push type: topic, priority, size and ``aps``.

Sources: developer.apple.com, "Sending notification requests to APNs", "Starting and updating Live Activities with
ActivityKit push notifications", "Updating widgets with WidgetKit push notifications"; mdm: "Sending MDM commands to a
device" (the payload is ``{"mdm": PushMagic}``).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from waypost.channels.push.payload import overlaid, present
from waypost.domain.channel import APNS
from waypost.domain.content import ApnsPushType, Content, Kind, Urgency
from waypost.domain.errors import Fault
from waypost.domain.message import Message
from waypost.domain.time import SECOND_MS

UNLESS_LOW = {Urgency.CRITICAL: "10", Urgency.HIGH: "10", Urgency.NORMAL: "10", Urgency.LOW: "5"}
"""The priorities of what people see: at once, unless the caller asks to spare the battery (decision 0042)."""
BY_URGENCY = {Urgency.CRITICAL: "10", Urgency.HIGH: "10", Urgency.NORMAL: "5", Urgency.LOW: "5"}
"""The priorities of a push whose number Apple limits: 10 counts against an app's budget (requirements S1-T1)."""
AT_ONCE = dict.fromkeys(Urgency, "10")
SPARING = dict.fromkeys(Urgency, "5")
"""The priorities of a push to save power: Apple refuses 10 for a background push (requirements S1-T1)."""


class PushTypeRule(Struct, frozen=True):
    """The rules that pushes of one type follow."""

    suffix: str
    """The text that follows the bundle id in ``apns-topic``."""
    priority: dict[Urgency, str]
    limit_bytes: int = 4096


RULES: dict[ApnsPushType, PushTypeRule] = {
    ApnsPushType.ALERT: PushTypeRule("", UNLESS_LOW),
    ApnsPushType.BACKGROUND: PushTypeRule("", SPARING),
    ApnsPushType.LOCATION: PushTypeRule(".location-query", BY_URGENCY),
    ApnsPushType.VOIP: PushTypeRule(".voip", AT_ONCE, limit_bytes=5120),
    ApnsPushType.COMPLICATION: PushTypeRule(".complication", BY_URGENCY),
    ApnsPushType.FILEPROVIDER: PushTypeRule(".pushkit.fileprovider", BY_URGENCY),
    ApnsPushType.LIVEACTIVITY: PushTypeRule(".push-type.liveactivity", BY_URGENCY),
    ApnsPushType.PUSHTOTALK: PushTypeRule(".voip-ptt", AT_ONCE),
    ApnsPushType.WIDGETS: PushTypeRule(".push-type.widgets", BY_URGENCY),
    ApnsPushType.CONTROLS: PushTypeRule(".push-type.controls", BY_URGENCY),
    # Its topic is no bundle id: the UID in the subject of the MDM push certificate, which is the app's setting then.
    ApnsPushType.MDM: PushTypeRule("", BY_URGENCY),
}
_REDRAWN = (ApnsPushType.WIDGETS, ApnsPushType.CONTROLS)
_ORDINARY = (ApnsPushType.ALERT, ApnsPushType.BACKGROUND)
MAGIC_KEY = "mdm"
_EVENTS = ("start", "update", "end")


def push_type_of(content: Content, kind: Kind) -> ApnsPushType:
    """Return the push type that the caller asked for, or the one of the kind."""
    if content.push_type is not None:
        return content.push_type
    return ApnsPushType.BACKGROUND if kind is Kind.SILENT else ApnsPushType.ALERT


def special_payload(message: Message, push_type: ApnsPushType) -> dict[str, Any]:
    """Build the JSON of a push neither alert nor background: data, ``aps`` by type, the overrides over both.

    A device looks into nothing but ``mdm`` where it is told to ask its management for work.
    """
    content = message.content
    if push_type is ApnsPushType.MDM:
        return {MAGIC_KEY: content.data[MAGIC_KEY]}
    document = dict(content.data)
    if push_type is ApnsPushType.LIVEACTIVITY:
        document["aps"] = _activity(message)
    else:
        document["aps"] = {"content-changed": True} if push_type in _REDRAWN else {}
    return overlaid(document, message.override)


def special_faults(content: Content) -> list[Fault]:
    """List what Apple would silently drop, or refuse, of a push that is neither alert nor background."""
    if content.push_type is None or content.push_type in _ORDINARY:
        return []
    override = content.overrides.get(APNS, {})
    if content.push_type is ApnsPushType.MDM:
        return _mdm_faults(content, override)
    aps = override.get("aps", {})
    found = [
        Fault(f"overrides.apns.aps.{key}", f"has no place in a push of the type {content.push_type}")
        for key in ("alert", "badge", "sound", "content-available")
        if key in aps and content.push_type is not ApnsPushType.LIVEACTIVITY
    ]
    if content.push_type is ApnsPushType.LIVEACTIVITY:
        found += [Fault(f"overrides.apns.aps.{key}", why) for key, why in _activity_faults(content, aps)]
    return found


def _mdm_faults(content: Content, override: dict[str, Any]) -> list[Fault]:
    magic = content.data.get(MAGIC_KEY)
    found = [Fault(f"data.{key}", "has no place in a push of the type mdm") for key in content.data if key != MAGIC_KEY]
    if not isinstance(magic, str) or not magic:
        found.append(Fault(f"data.{MAGIC_KEY}", "must be the PushMagic that the device gave at its check-in"))
    if override:
        found.append(Fault("overrides.apns", "has no place in a push of the type mdm"))
    return found


def _activity(message: Message) -> dict[str, Any]:
    """Build ``aps`` of a live activity: its time, since Apple drops what is older than the last one, and its alert."""
    content = message.content
    alert = present({"title": content.title, "body": content.body, "sound": content.sound})
    return present({"timestamp": message.created_at // SECOND_MS, "alert": alert or None})


def _activity_faults(content: Content, aps: dict[str, Any]) -> list[tuple[str, str]]:
    event = aps.get("event")
    if event not in _EVENTS:
        return [("event", f"must be one of {', '.join(_EVENTS)}")]
    found: list[tuple[str, str]] = []
    if event != "end" and "content-state" not in aps:
        found.append(("content-state", f"is needed to {event} a live activity"))
    if event == "start":
        found += [
            (key, "is needed to start a live activity") for key in ("attributes-type", "attributes") if key not in aps
        ]
        if not content.title and not content.body and "alert" not in aps:
            found.append(("alert", "a live activity starts with a title or a body"))
    for key, (kind, word) in _ACTIVITY_KEYS.items():
        if key in aps and (not isinstance(aps[key], kind) or isinstance(aps[key], bool)):
            found.append((key, f"must be {word}"))
    return found


_SECONDS = ((int, float), "UNIX seconds, a number")
_OBJECT = ((dict,), "an object")
_TEXT = ((str,), "text")
_ACTIVITY_KEYS: dict[str, tuple[tuple[type, ...], str]] = {
    "timestamp": _SECONDS,
    "stale-date": _SECONDS,
    "dismissal-date": _SECONDS,
    "relevance-score": ((int, float), "a number"),
    "content-state": _OBJECT,
    "attributes": _OBJECT,
    "attributes-type": _TEXT,
    "input-push-token": ((int,), "1"),
    "input-push-channel": _TEXT,
}
