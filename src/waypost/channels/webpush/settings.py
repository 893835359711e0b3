"""Settings of an app's Web Push identity (``apps.<app>.webpush``)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.channels.push.fitting import Fit
from waypost.domain.channel import Channel

CHANNEL: Final = Channel("webpush")

KNOWN_SERVICES = (
    "fcm.googleapis.com",
    "updates.push.services.mozilla.com",
    "*.notify.windows.com",
    "*.push.apple.com",
)
"""The push services of the browsers."""


class WebPushSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one VAPID key; subscriptions are bound to it when they are made."""

    vapid_private_key_file: str
    """An EC key on P-256 (PEM)."""
    subject: str
    """Whom a push server may turn to: ``mailto:…`` or ``https://…``."""
    allow_endpoints: tuple[str, ...] = KNOWN_SERVICES
    """Where subscriptions may point: hosts, ``*.`` for any labels in front, ``https://host:port[/path]``, or ``*`` for
    any public host."""
    fit: Fit = "refuse"
    """Over the provider's limit: refused, or body, subtitle and title shortened (`trim`)."""
    declarative: bool = False
    """Lets Safari show a title and link without a service worker."""
    reuse_sender_key: bool = False
    """A sender key serves an hour instead of one message: less CPU, less secrecy."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 4
    """The most connections to each push service."""
    push_services: Annotated[int, Meta(ge=1, le=1000)] = 64
    """The most push services connected at once."""
