"""What an operator says of one Web Push credential."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class WebPushSettings(Struct, frozen=True, kw_only=True):
    """One VAPID key (RFC 8292), under which browsers subscribed."""

    vapid_private_key_file: Path
    """The P-256 private key, PEM."""
    subject: str
    """Whom a push service may write to: a mailto: or https: URL (RFC 8292 section 2.1)."""
    allow_endpoints: tuple[str, ...] = ()
    """Origins that subscriptions may name although they are not public, such as the lab's."""
    ca_file: Path | None = None
    """Certificates to trust in place of the system's, PEM."""
