"""The words in which Huawei is told of a notification.

Source: Huawei Push Kit, "Sending messages" (REST, v1).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from waypost.channels.push.payload import ID_KEY, overlaid, present
from waypost.domain.content import Kind, Urgency
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.message import Message
from waypost.domain.time import Instant

LIMIT_BYTES: Final = 4096
"""The most bytes of a message, without its tokens."""
LONGEST_TTL_S: Final = 15 * 86_400
_OPENS_THE_APP: Final = {"type": 3}


def message_of(message: Message, notification_id: NotificationId, now: Instant) -> dict[str, Any]:
    """Build the field ``message`` of the request, without the token."""
    content = message.content
    urgent = message.urgency in (Urgency.CRITICAL, Urgency.HIGH)
    android: dict[str, Any] = {
        "urgency": "HIGH" if urgent else "NORMAL",
        "ttl": f"{min(message.remaining_ttl_s(now), LONGEST_TTL_S)}s",
    }
    made: dict[str, Any] = {
        "data": msgspec.json.encode({**content.data, ID_KEY: format_id(notification_id)}).decode(),
        "android": android,
    }
    if message.kind is not Kind.SILENT:
        made["notification"] = present({"title": content.title, "body": content.body, "image": content.image})
        android["notification"] = {"click_action": _OPENS_THE_APP}
    made = overlaid(made, message.override)
    made.pop("token", None)
    return made


def body_of(message: dict[str, Any], token: str) -> bytes:
    """Build the body of the request for one device."""
    return msgspec.json.encode({"validate_only": False, "message": {**message, "token": [token]}})
