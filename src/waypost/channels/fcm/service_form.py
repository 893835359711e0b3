"""The message of the notifications service: one form for Android, iOS and the web, urgent on each (S0-08 to S0-13)."""

from __future__ import annotations

from typing import Any

from waypost.channels.push.payload import present
from waypost.domain.content import Content


def message_of(content: Content) -> dict[str, Any]:
    """Build the message for each device, without its token; data values are not text yet."""
    channel = content.android_channel
    android: dict[str, Any] = {"priority": "HIGH"}
    if channel:
        android["notification"] = {"channel_id": channel}
    return {
        "notification": present({"title": content.title, "body": content.body}),
        "data": content.data | ({"channel": channel} if channel else {}),
        "android": android,
        "apns": {
            "headers": {"apns-priority": "10"},
            "payload": {"aps": present({"mutable-content": 1, "badge": content.badge})},
        },
        "webpush": {"headers": {"Urgency": "high"}},
    }
