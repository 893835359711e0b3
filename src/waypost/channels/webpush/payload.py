"""The message to a web subscription: headers and JSON, the same for every device of it.

Source: RFC 8030 section 5. The JSON is Waypost's own; a service worker reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from waypost.channels.push.encryption import PLAINTEXT_LIMIT_BYTES
from waypost.channels.push.fitting import Fit, fitted
from waypost.channels.push.message import ENCRYPTED, document_of, headers_of
from waypost.channels.push.payload import ID_KEY
from waypost.domain.content import Content
from waypost.domain.message import Message
from waypost.domain.time import Instant

DECLARATIVE = 8030
"""The mark of a declarative push: the number of the RFC."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class Rendering(Struct, frozen=True):
    """The headers beside path, authorization and time to live (`families`), and what will be encrypted."""

    headers: tuple[tuple[str, str], ...]
    ttl_s: int
    plaintext: bytes


def render(message: Message, now: Instant, *, declarative: bool = False, fit: Fit = "refuse") -> Rendering:
    """Render what goes to each device of *notification*; *now* decides the remaining time to live."""
    plaintext = _written(message, message.content, declarative)
    if fit == "trim" and len(plaintext) > PLAINTEXT_LIMIT_BYTES:
        plaintext = _trimmed(message, declarative) or plaintext
    return Rendering((*ENCRYPTED, *headers_of(message)), message.remaining_ttl_s(now), plaintext)


def _written(message: Message, content: Content, declarative: bool) -> bytes:
    document = document_of(message, content)
    return msgspec.json.encode(declared(document) if declarative else document)


def _trimmed(message: Message, declarative: bool) -> bytes:
    """Render as much of the text as there is room for; empty where even none of it leaves enough."""
    content = fitted(message.content, lambda tried: len(_written(message, tried, declarative)), PLAINTEXT_LIMIT_BYTES)
    return b"" if content is None else _written(message, content, declarative)


def declared(document: dict[str, Any]) -> dict[str, Any]:
    """Make *document* a declarative push, or leave it as it is where it lacks a title or a link to open.

    Source: the W3C Push API, "declarative push message", and WebKit's parser: one value of a wrong type, and it is no
    declarative push at all. A browser that does not know it hands the same JSON to the service worker.
    """
    title, link = document.get("title"), document.get("link")
    if not title or not isinstance(title, str) or not isinstance(link, str) or not _is_url(link):
        return document
    shown = {key: document[key] for key in document if key in _OPTIONS and _fits(key, document[key])}
    shown["navigate"] = link
    actions = document.get("actions")
    if isinstance(actions, list) and all(map(_is_action, actions)):
        shown["actions"] = [_declared_action(action, link) for action in actions]
    own = {key: value for key, value in document.items() if key not in shown}
    message: dict[str, Any] = {"web_push": DECLARATIVE, ID_KEY: document[ID_KEY], "notification": shown | {"data": own}}
    if _is_badge(document.get("badge")):
        message["app_badge"] = document["badge"]
    return message


def _is_action(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("action")) and _is_text(value.get("title"))


def _declared_action(action: dict[str, Any], link: str) -> dict[str, Any]:
    """Build an action with something to open, which is required: its own link, else the notification's."""
    navigate = action.get("link")
    shown = {key: action[key] for key in ("action", "title") if key in action}
    icon = {"icon": action["icon"]} if _is_url(action.get("icon")) else {}
    return shown | icon | {"navigate": navigate if _is_url(navigate) else link}


def _fits(key: str, value: Any) -> bool:
    """Tell whether WebKit takes an option of this value."""
    return _OPTIONS[key](value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and _URL.match(value) is not None


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_badge(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "title": _is_text,
    "body": _is_text,
    "lang": _is_text,
    "tag": _is_text,
    "dir": lambda value: value in ("auto", "ltr", "rtl"),
    "icon": _is_url,
    "image": _is_url,
    "silent": _is_bool,
    "requireInteraction": _is_bool,
    "renotify": _is_bool,
}
"""The keys that a declarative notification may have beside ``navigate``, ``actions`` and ``data``, with their form."""
