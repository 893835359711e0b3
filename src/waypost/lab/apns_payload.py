"""The form of an APNs payload, by push type (Apple: "Generating a remote notification")."""

from typing import Any

_LEVELS = ("passive", "active", "time-sensitive", "critical")
_VISIBLE = ("alert", "badge", "sound")
_NUMBER = (int, float)
_TEXT_KEYS = ("thread-id", "category", "target-content-id", "filter-criteria", "attributes-type")
_FLAT_LOCALISATION = ("loc-key", "loc-args", "title-loc-key", "title-loc-args")
_SECONDS_KEYS = ("timestamp", "stale-date", "dismissal-date")


def notification_id(payload: Any) -> str:
    """Read the `waypost_id` beside `aps`; empty when there is none."""
    value = payload.get("waypost_id") if isinstance(payload, dict) else None
    return value if isinstance(value, str) else ""


def aps_is_sound(payload: dict[str, Any], push_type: str) -> bool:
    """Check that every documented key of `aps` has its documented type; unknown keys are Apple's to ignore."""
    if push_type == "mdm":
        return isinstance(payload.get("mdm"), str)
    aps = payload.get("aps")
    if not isinstance(aps, dict):
        return False
    return (
        (_activity_alert_is_sound if push_type == "liveactivity" else _alert_is_sound)(aps.get("alert"))
        and _sound_is_sound(aps.get("sound"))
        and _number(aps.get("badge"), low=0)
        and _number(aps.get("content-available"), low=1, high=1)
        and _number(aps.get("mutable-content"), low=1, high=1)
        and aps.get("interruption-level", "active") in _LEVELS
        and _number(aps.get("relevance-score"), high=None if push_type == "liveactivity" else 1, low=None)
        and all(isinstance(aps.get(key, ""), str) for key in _TEXT_KEYS)
        and all(_number(aps.get(key), low=0, high=10**11) for key in _SECONDS_KEYS)
    )


def fits_type(payload: dict[str, Any], push_type: str) -> bool:
    """Check that the payload fits its push type."""
    aps = payload.get("aps", {})
    match push_type:
        case "alert":
            return any(key in aps for key in _VISIBLE)
        case "background":
            return aps.get("content-available") == 1 and not any(key in aps for key in _VISIBLE)
        case "widgets" | "controls":
            return aps.get("content-changed") is True
        case "mdm":
            return payload.keys() == {"mdm"}
        case "liveactivity":
            return _live_activity_is_whole(aps)
        case _:
            return True


def _live_activity_is_whole(aps: dict[str, Any]) -> bool:
    event = aps.get("event")
    if event not in ("start", "update", "end") or "timestamp" not in aps:
        return False
    if aps.get("input-push-token", 1) != 1 or not isinstance(aps.get("input-push-channel", ""), str):
        return False
    if event == "start":
        return all(key in aps for key in ("attributes-type", "attributes", "alert", "content-state"))
    return event == "end" or isinstance(aps.get("content-state"), dict)


def _alert_is_sound(alert: Any) -> bool:
    if isinstance(alert, dict):
        paired = (
            ("loc-args", "loc-key"),
            ("title-loc-args", "title-loc-key"),
            ("subtitle-loc-args", "subtitle-loc-key"),
        )
        return all(key in alert for arguments, key in paired if arguments in alert)
    return alert is None or isinstance(alert, str)


def _activity_alert_is_sound(alert: Any) -> bool:
    """Check a live activity's title and body: texts, or objects with their own `loc-key` and `loc-args`."""
    if not isinstance(alert, dict):
        return alert is None
    parts = [alert[key] for key in ("title", "body") if key in alert]
    return not any(key in alert for key in _FLAT_LOCALISATION) and all(
        isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("loc-key"), str)) for part in parts
    )


def _sound_is_sound(sound: Any) -> bool:
    if isinstance(sound, dict):
        return isinstance(sound.get("name", ""), str) and _number(sound.get("volume"), low=0, high=1)
    return sound is None or isinstance(sound, str)


def _number(value: Any, *, low: float | None = None, high: float | None = None) -> bool:
    """Check that *value* is absent, or a number within the bounds (a JSON true is no number)."""
    if value is None:
        return True
    if not isinstance(value, _NUMBER) or isinstance(value, bool):
        return False
    return (low is None or value >= low) and (high is None or value <= high)
