"""What APNs is told of a notification: headers and JSON, the same for every device of it.

Sources: developer.apple.com, "Generating a remote notification" and "Sending notification requests to APNs".
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.channels.apns.push_types import RULES, push_type_of, special_faults, special_payload
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push.fitting import fitted
from waypost.channels.push.payload import ANY_ID, ID_KEY, overlaid, too_large
from waypost.domain.audience import Audience
from waypost.domain.channel import APNS
from waypost.domain.content import ApnsPushType, Content, Kind, Urgency
from waypost.domain.errors import Fault
from waypost.domain.message import Message
from waypost.domain.outcome import Refused
from waypost.domain.time import SECOND_MS, Instant

_encode = msgspec.json.Encoder().encode
COLLAPSE_ID_LIMIT_BYTES = 64
CHANNEL_KIND = "channel"
"""The kind of ``to`` that names a broadcast channel, by its id."""
BROADCAST_LIMIT_BYTES = 5120
LONGEST_STORED_S = 8 * 3600
"""Seconds that Apple keeps the last message of a channel at most, where it keeps any."""

NOT_ENTITLED = "the setting critical_alerts is off, which says that Apple granted the app's entitlement"
SHOWN_KEYS = ("alert", "badge", "sound")
"""The keys that a background push must not have in ``aps``."""


class Rendering(Struct, frozen=True):
    """The headers beside the path and the authorization, and the body."""

    headers: tuple[tuple[str, str], ...]
    body: bytes
    limit_bytes: int
    note: str = ""
    """The change that made it acceptable to Apple as it is meant."""


def rendered(message: Message, settings: ApnsSettings, now: Instant) -> Rendering | Refused:
    """Render what goes to each device, shortened or downgraded where it must and may be; or say why nothing does."""
    if not settings.critical_alerts and settings.critical_fallback == "refuse" and is_critical(message):
        return Refused("critical_not_entitled", NOT_ENTITLED)
    rendering = render(message, settings, now)
    refusal = too_large(len(rendering.body), rendering.limit_bytes)
    if refusal is None or settings.fit == "refuse":
        return refusal or rendering

    def with_content(content: Content) -> Rendering:
        return render(replace(message, content=content), settings, now)

    shorter = fitted(message.content, lambda each: len(with_content(each).body), rendering.limit_bytes)
    return refusal if shorter is None else with_content(shorter)


def is_critical(message: Message) -> bool:
    """Tell whether it would sound although the device is muted."""
    if message.urgency is not Urgency.CRITICAL:
        return False
    return push_type_of(message.content, message.kind) is ApnsPushType.ALERT


def render(message: Message, settings: ApnsSettings, now: Instant) -> Rendering:
    """Render what goes to each device of *notification*, whatever its size; *now* decides the time to live."""
    if message.content.to is not None:
        return _to_channel(message, message.content.to, settings, now)
    push_type = push_type_of(message.content, message.kind)
    rule = RULES[push_type]
    headers = _headers(settings.topic, push_type, message.urgency, _expiration(message, now))
    if message.content.collapse_key:
        headers += (("apns-collapse-id", fitted_collapse_id(message.content.collapse_key)),)
    note = ""
    if message.urgency is Urgency.CRITICAL and not settings.critical_alerts and is_critical(message):
        note = f"sent as {settings.critical_fallback}: {NOT_ENTITLED}"
    return Rendering(headers, _encode(payload(message, push_type, settings)), rule.limit_bytes, note)


@lru_cache(maxsize=256)
def _headers(topic: str, push_type: ApnsPushType, urgency: Urgency, expiration: int) -> tuple[tuple[str, str], ...]:
    """Build the headers of all notifications of one kind and urgency that expire in the same second."""
    rule = RULES[push_type]
    return (
        ("apns-topic", topic + rule.suffix),
        ("apns-push-type", push_type.value),
        ("apns-priority", rule.priority[urgency]),
        ("apns-expiration", str(expiration)),
    )


def _to_channel(message: Message, to: Audience, settings: ApnsSettings, now: Instant) -> Rendering:
    """Render what goes to all who follow *to*: without a topic, since its path names the app, and not collapsed."""
    expiration = min(_expiration(message, now), now // SECOND_MS + LONGEST_STORED_S)
    headers = (
        ("apns-channel-id", to.name),
        ("apns-push-type", "liveactivity"),
        ("apns-priority", RULES[ApnsPushType.LIVEACTIVITY].priority[message.urgency]),
        ("apns-expiration", str(expiration)),
    )
    return Rendering(
        headers, msgspec.json.encode(payload(message, ApnsPushType.LIVEACTIVITY, settings)), BROADCAST_LIMIT_BYTES
    )


def payload(message: Message, push_type: ApnsPushType, settings: ApnsSettings) -> dict[str, Any]:
    """Build the JSON object: ``aps``, the caller's data beside it, the overrides over both, the id over all."""
    content = message.content
    if push_type not in (ApnsPushType.ALERT, ApnsPushType.BACKGROUND):
        named = {} if push_type is ApnsPushType.MDM else {ID_KEY: ANY_ID}
        return special_payload(message, push_type) | named
    silent = message.kind is Kind.SILENT
    document: dict[str, Any] = {**content.data}
    if not silent and (content.image is not None or content.link is not None or content.actions):
        document |= _extras(content)
    document["aps"] = {"content-available": 1} if silent else _aps(content)
    if message.urgency is Urgency.CRITICAL and push_type is ApnsPushType.ALERT:
        document["aps"] |= _critical(content, settings)
    if message.override:
        document = overlaid(document, message.override)
        if silent and isinstance(document["aps"], dict):
            document["aps"] = {key: value for key, value in document["aps"].items() if key not in SHOWN_KEYS}
    document[ID_KEY] = ANY_ID
    return document


def fitted_collapse_id(collapse_key: str) -> str:
    """Return *collapse_key* where it fits the header (64 bytes, printable ASCII), else its SHA-256 in hex."""
    fits = collapse_key.isascii() and collapse_key.isprintable() and collapse_key == collapse_key.strip()
    if fits and len(collapse_key) <= COLLAPSE_ID_LIMIT_BYTES:
        return collapse_key
    return hashlib.sha256(collapse_key.encode()).hexdigest()


def faults(content: Content, kind: Kind) -> list[Fault]:
    """List what APNs would refuse or we could not send, with the path of each."""
    taken = [key for key in ("aps", ID_KEY) if key in content.data]
    found = [Fault(f"data.{key}", "the key is taken in an APNs payload") for key in taken]
    override = content.overrides.get(APNS, {})
    to_channel = content.to is not None and content.to.channel == APNS
    if to_channel and content.push_type is not ApnsPushType.LIVEACTIVITY:
        found.append(Fault("push_type", "a broadcast channel takes live activities alone"))
    if not override and content.push_type is None:
        return found
    if ID_KEY in override:
        found.append(Fault(f"overrides.apns.{ID_KEY}", "is set by Waypost"))
    aps = override.get("aps", {})
    if not isinstance(aps, dict):
        return [*found, Fault("overrides.apns.aps", "must be an object")]
    found += special_faults(content)
    if to_channel and aps.get("event") == "start":
        found.append(Fault("overrides.apns.aps.event", "nobody can start a live activity by broadcast"))
    if kind is Kind.SILENT:
        found += [
            Fault(f"overrides.apns.aps.{key}", "a silent notification shows nothing")
            for key in SHOWN_KEYS
            if key in aps
        ]
    return found


def _expiration(message: Message, now: Instant) -> int:
    """Compute the expiration in UNIX seconds; 0 is one attempt at once, never stored."""
    if message.ttl_ms == 0 or message.expires_at - now < SECOND_MS:
        return 0
    return message.expires_at // SECOND_MS


def _aps(content: Content) -> dict[str, Any]:
    alert: dict[str, Any] = {}
    if content.title is not None:
        alert["title"] = content.title
    if content.subtitle is not None:
        alert["subtitle"] = content.subtitle
    if content.body is not None:
        alert["body"] = content.body
    aps: dict[str, Any] = {"alert": alert} if alert else {}
    if content.badge is not None:
        aps["badge"] = content.badge
    if content.sound is not None:
        aps["sound"] = content.sound
    if content.category is not None:
        aps["category"] = content.category
    if content.thread is not None:
        aps["thread-id"] = content.thread
    if content.image is not None:
        aps["mutable-content"] = 1
    return aps


def _critical(content: Content, settings: ApnsSettings) -> dict[str, Any]:
    """Build the sound and interruption level of a critical alert, as far as Apple permits the app."""
    if not settings.critical_alerts:
        return {"interruption-level": settings.critical_fallback}
    sound = {"critical": 1, "name": content.sound or "default", "volume": 1.0}
    return {"interruption-level": "critical", "sound": sound}


def _extras(content: Content) -> dict[str, Any]:
    """Return the fields that ``aps`` has no key for, under our names, for a notification service extension."""
    extras: dict[str, Any] = {}
    if content.image is not None:
        extras["waypost_image"] = content.image
    if content.link is not None:
        extras["waypost_link"] = content.link
    if content.actions:
        extras["waypost_actions"] = content.actions
    return extras
