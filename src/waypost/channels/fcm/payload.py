"""What FCM is told of a notification: a message, the same for every device of it but for the token.

Sources: firebase.google.com, "REST Resource: projects.messages" and "About FCM messages".
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.channels.fcm.platforms import ANDROID, LONGEST_TTL_S, part_for, ttl_of, without_shown
from waypost.channels.fcm.service_form import message_of
from waypost.channels.fcm.settings import CHANNEL, FcmSettings, Form
from waypost.channels.push.fitting import fitted
from waypost.channels.push.payload import ANY_ID, ID_KEY, named, overlaid, too_large
from waypost.domain.audience import Audience
from waypost.domain.content import Content, Kind
from waypost.domain.device import Platform
from waypost.domain.errors import Fault
from waypost.domain.ids import NotificationId
from waypost.domain.message import Message
from waypost.domain.outcome import Refused
from waypost.domain.time import SECOND_MS, Instant

PAYLOAD_LIMIT_BYTES = 4096
TOPIC_LIMIT_BYTES = 2048
"""The most bytes of a message to a topic or a condition (firebase.google.com, "ErrorCode")."""
TARGET_KEYS = ("token", "fid", "topic", "condition", "name")
"""The keys that name the recipient (or the answer) in a message: never taken from an override."""

INSTALLATION_PREFIX = "fid:"
"""The prefix of a Firebase installation id that is registered in place of a token."""

TOPIC, CONDITION, GROUP = "topic", "condition", "group"
_GROUP_TOKEN: Final = re.compile(r"[A-Za-z0-9_:%.-]{20,1024}")
TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9-_.~%]{1,900}")
_TOKEN, _INSTALLATION = b'"token":', b'"fid":'
_SENT = b'{"message":{'
_VALIDATED = b'{"validate_only":true,"message":{'
_encode = msgspec.json.Encoder().encode


class Rendering(Struct, frozen=True):
    """The message without its token."""

    document: dict[str, Any]
    rest: bytes
    """The bytes that follow the recipient in the body."""
    to: bytes
    """The key of the recipient: a token, a topic or a condition."""
    limit_bytes: int

    @property
    def size_bytes(self) -> int:
        """The size as FCM counts it."""
        return counted_bytes(self.document)

    def body(self, token: str, notification_id: NotificationId, *, validate_only: bool = False) -> bytes:
        """Build the body of the request for one recipient; an installation id follows ``fid:`` in place of a token."""
        return self.start(token, validate_only=validate_only) + named(self.rest, notification_id)

    def start(self, token: str, *, validate_only: bool = False) -> bytes:
        """Build what differs in the bodies for the devices of one notification; the rest follows."""
        start = _VALIDATED if validate_only else _SENT
        kind = self.to
        if kind is _TOKEN and token.startswith(INSTALLATION_PREFIX):
            kind, token = _INSTALLATION, token.removeprefix(INSTALLATION_PREFIX)
        return start + kind + _encode(token)


def rendered(
    message: Message, now: Instant, settings: FcmSettings, platform: Platform = ANDROID
) -> Rendering | Refused:
    """Render what goes to each device of *platform*, shortened where it must and may be; or say why nothing does."""
    rendering = render(message, now, settings.form, platform)
    if len(rendering.rest) <= rendering.limit_bytes:  # its JSON is larger than what counts
        return rendering
    refusal = too_large(rendering.size_bytes, rendering.limit_bytes)
    if refusal is None:
        return rendering
    if settings.fit == "refuse":
        return refusal

    def rendered_with(content: Content) -> Rendering:
        return render(replace(message, content=content), now, settings.form, platform)

    shorter = fitted(message.content, lambda each: rendered_with(each).size_bytes, rendering.limit_bytes)
    return refusal if shorter is None else rendered_with(shorter)


def render(message: Message, now: Instant, form: Form = "waypost", platform: Platform = ANDROID) -> Rendering:
    """Render what goes to each device of *platform*; *now* decides the remaining time to live."""
    content = message.content
    silent = message.kind is Kind.SILENT
    is_ours = silent or form == "waypost" or not _shown(content)
    document = _message(message, now, platform) if is_ours else message_of(content)
    if not is_ours and message.ttl_ms < LONGEST_TTL_S * SECOND_MS:
        document["android"]["ttl"] = ttl_of(message, now)
    if message.override:
        document = _overridden(document, message.override, silent=silent)
    data = document["data"] if isinstance(document["data"], dict) else {}
    document["data"] = data = {key: value if value.__class__ is str else _text(value) for key, value in data.items()}
    if is_ours:
        data[ID_KEY] = ANY_ID
    rest = b",%b}" % _encode(document)[1:]
    if content.to is None or content.to.kind == GROUP:  # a group has a token, as a device has
        return Rendering(document, rest, _TOKEN, PAYLOAD_LIMIT_BYTES)
    return Rendering(document, rest, f'"{content.to.kind}":'.encode(), TOPIC_LIMIT_BYTES)


def _message(message: Message, now: Instant, platform: Platform) -> dict[str, Any]:
    """Build the message in Waypost's own form."""
    content = message.content
    data = {**content.data}
    document: dict[str, Any] = {"data": data, **part_for(platform, message, now)}
    if message.kind is not Kind.SILENT:
        data |= _extras(content)
        if shown := _shown(content):
            document["notification"] = shown
    return document


def _shown(content: Content) -> dict[str, Any]:
    """Build what every platform shows; nothing where a message brings a badge alone."""
    shown: dict[str, Any] = {}
    if content.title is not None:
        shown["title"] = content.title
    if content.body is not None:
        shown["body"] = content.body
    if content.image is not None:
        shown["image"] = content.image
    return shown


def counted_bytes(document: dict[str, Any]) -> int:
    """Count what counts against the limit: keys and values of notification and data, the common ones and Android's."""
    parts = [document.get("notification"), document.get("data")]
    android = document.get("android")
    if isinstance(android, dict):
        parts += [android.get("notification"), android.get("data")]
    return sum(len(key.encode()) + len(_text(value).encode()) for part in parts if part for key, value in part.items())


def faults(content: Content, kind: Kind) -> list[Fault]:
    """List what FCM would refuse or we could not send, with the path of each."""
    found = [Fault(f"data.{key}", "the key is reserved in FCM") for key in content.data if is_reserved(key)]
    override = content.overrides.get(CHANNEL)
    if override:
        found += _override_faults(override, kind)
    if content.to is not None and content.to.channel == CHANNEL:
        found += _listener_faults(content.to)
    return found


def _override_faults(override: dict[str, Any], kind: Kind) -> list[Fault]:
    found = [Fault(f"overrides.fcm.{key}", "the recipient is set by Waypost") for key in TARGET_KEYS if key in override]
    found += [
        Fault(f"overrides.fcm.{key}", "must be an object")
        for key in ("data", "android", "notification")
        if not isinstance(override.get(key, {}), dict)
    ]
    if isinstance(override.get("data"), dict):
        found += [
            Fault(f"overrides.fcm.data.{key}", "the key is reserved in FCM")
            for key in override["data"]
            if is_reserved(key)
        ]
    if kind is Kind.SILENT and "notification" in override:
        found.append(Fault("overrides.fcm.notification", "a silent notification shows nothing"))
    return found


def _listener_faults(to: Audience) -> list[Fault]:
    if to.kind == TOPIC and not TOPIC_NAME.fullmatch(to.name):
        return [Fault("to.name", "a topic has 1 to 900 of a-z A-Z 0-9 - _ . ~ %")]
    if to.kind == GROUP and not _GROUP_TOKEN.fullmatch(to.name):
        return [Fault("to.name", "a group is named by its token, the notification_key that Google gave it")]
    if to.kind == CONDITION and "in topics" not in to.name:
        return [Fault("to.name", "a condition speaks of topics, such as 'a' in topics && 'b' in topics")]
    return []


def is_reserved(key: str) -> bool:
    """Tell whether a data key is FCM's own (the wider set of its older pages) or ours."""
    return key in ("from", "message_type", ID_KEY) or key.startswith(("google", "gcm"))


def _extras(content: Content) -> dict[str, Any]:
    """Return the fields that FCM has none for, as data that the app can read."""
    extras: dict[str, Any] = {}
    if content.subtitle is not None:
        extras["waypost_subtitle"] = content.subtitle
    if content.link is not None:
        extras["waypost_link"] = content.link
    if content.icon is not None and "://" in content.icon:
        extras["waypost_icon"] = content.icon
    if content.category is not None:
        extras["waypost_category"] = content.category
    if content.thread is not None:
        extras["waypost_thread"] = content.thread
    if content.actions:
        extras["waypost_actions"] = content.actions
    return extras


def _overridden(document: dict[str, Any], override: dict[str, Any], *, silent: bool) -> dict[str, Any]:
    document = overlaid(document, {key: value for key, value in override.items() if key not in TARGET_KEYS})
    return without_shown(document) if silent else document


def _text(value: Any) -> str:
    """Format a data value as FCM wants it: text stays, all else is its JSON text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
