"""The judgement whether a decrypted message is a declarative push, by WebKit's parser (Safari 18.4 and later)."""

import urllib.parse
from typing import Any

import msgspec

ORDINARY, DECLARATIVE = "ordinary", "declarative"
_MAGIC = 8030
_MAX_BADGE = 2**64 - 1
_DIRECTIONS = ("auto", "ltr", "rtl")
_TEXTS = ("body", "lang", "tag")


def verdict(plaintext: bytes) -> str:
    """Judge a message: `ordinary`, `declarative`, or `invalid: …` with what hands it to the service worker."""
    try:
        message = msgspec.json.decode(plaintext)
    except msgspec.DecodeError:
        return ORDINARY
    if not isinstance(message, dict) or message.get("web_push") != _MAGIC:
        return ORDINARY
    fault = _top_fault(message) or _notification_fault(message.get("notification"))
    return f"invalid: {fault}" if fault else DECLARATIVE


def _top_fault(message: dict[str, Any]) -> str:
    if not isinstance(message.get("mutable", False), bool):
        return "mutable is not a boolean"
    badge = message.get("app_badge", 0)
    if isinstance(badge, str) and badge.isdecimal():
        badge = int(badge)
    if isinstance(badge, bool) or not isinstance(badge, int) or not 0 <= badge <= _MAX_BADGE:
        return "app_badge is not a number from 0"
    return ""


def _notification_fault(notification: Any) -> str:
    if not isinstance(notification, dict):
        return "no notification"
    if not isinstance(notification.get("title"), str) or not notification["title"]:
        return "notification.title is missing"
    if not _is_url(notification.get("navigate")):
        return "notification.navigate is not a URL"
    for key in _TEXTS:
        if not isinstance(notification.get(key, ""), str):
            return f"notification.{key} is not a text"
    if notification.get("dir", "auto") not in _DIRECTIONS:
        return "notification.dir is none of auto, ltr, rtl"
    if "icon" in notification and not _is_url(notification["icon"]):
        return "notification.icon is not a URL"
    if not isinstance(notification.get("silent", False), bool):
        return "notification.silent is not a boolean"
    return _actions_fault(notification.get("actions", []))


def _actions_fault(actions: Any) -> str:
    if not isinstance(actions, list):
        return "notification.actions is not a list"
    for action in actions:
        if not isinstance(action, dict) or not all(isinstance(action.get(key), str) for key in ("action", "title")):
            return "an action lacks action or title"
        if not _is_url(action.get("navigate")):
            return "an action's navigate is not a URL"
    return ""


def _is_url(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urllib.parse.urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)
