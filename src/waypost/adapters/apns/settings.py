"""What an app says of its APNs account (``apps.<app>.apns``)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class ApnsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One signing key of one team, for one bundle id in one environment."""

    key_file: str
    """The ``.p8`` file from Apple's developer pages: an EC key on P-256 as PEM."""
    key_id: str
    """10 characters, from the same page."""
    team_id: str
    """10 characters."""
    topic: str
    """The app's bundle id."""
    environment: Literal["production", "sandbox"] = "production"
    """Which of Apple's gateways; tokens of one are unknown to the other."""
    endpoint: str | None = None
    """``https://host:port`` instead of the environment's own."""
    ca_file: str | None = None
    """Trust these authorities alone, instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=45)] = 25
    """At most, for visible notifications; each carries up to 1,000 requests at once."""
    silent_connections: Annotated[int, Meta(ge=1, le=5)] = 2
    """At most, for silent notifications, which have connections of their own."""
    dead_token_codes: tuple[str, ...] = ("Unregistered", "ExpiredToken")
    """The reasons that forget a token. ``BadDeviceToken`` also comes from the wrong environment, so it is not here."""
