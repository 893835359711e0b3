"""What an app says of UnifiedPush (``apps.<app>.unifiedpush``)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.adapters.push.fitting import Fit
from waypost.domain.channel import Channel

CHANNEL: Final = Channel("unifiedpush")


class UnifiedPushSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which push servers may be called, and as whom."""

    allow_endpoints: tuple[str, ...]
    """Push servers that devices may be registered at: host names, ``*.`` for any labels in front, ``https://host:port``,
    ``http://host:port`` in a private network, or ``*`` for any public host."""
    vapid_private_key_file: str | None = None
    """An EC key on P-256 as PEM, for push servers that want to know who sends; with ``subject``."""
    subject: str | None = None
    """Whom a push server may turn to: ``mailto:…`` or ``https://…``."""
    plaintext: bool = False
    """Whether a device without keys is sent to, as before version 3 of the specification: its server can read all."""
    fit: Fit = "refuse"
    """What becomes of a message over the limit: refused with its size, or shortened (body, subtitle, title)."""
    ca_file: str | None = None
    """Trust these authorities alone, instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 4
    """At most, to each push server."""
    push_services: Annotated[int, Meta(ge=1, le=1000)] = 64
    """Push servers connected at once, at most; the one unused for longest makes room."""
