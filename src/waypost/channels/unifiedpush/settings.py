"""Settings of an app's UnifiedPush (``apps.<app>.unifiedpush``)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.channels.push.fitting import Fit
from waypost.domain.channel import Channel

CHANNEL: Final = Channel("unifiedpush")


class UnifiedPushSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of which push servers may be called, and with which identity."""

    allow_endpoints: tuple[str, ...]
    """Push servers that devices may be at: hosts, ``*.`` for any labels in front, ``https://host:port``,
    ``http://host:port`` in a private network, or ``*`` for any public host."""
    vapid_private_key_file: str | None = None
    """An EC key on P-256 (PEM) that says who sends; with ``subject``."""
    subject: str | None = None
    """Whom a push server may turn to: ``mailto:…`` or ``https://…``."""
    plaintext: bool = False
    """Sends unencrypted to devices without keys: the push server can read it."""
    fit: Fit = "refuse"
    """Over the provider's limit: refused, or body, subtitle and title shortened (`trim`)."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 4
    """The most connections to each push server."""
    push_services: Annotated[int, Meta(ge=1, le=1000)] = 64
    """The most push servers connected at once."""
