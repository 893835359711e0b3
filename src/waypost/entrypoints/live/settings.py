"""Settings of the feed's live connections (``feed``)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class FeedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the live connections by which feeds are followed."""

    connections_limit: Annotated[int, Meta(ge=1)] = 20_000
    """The most live connections of one worker; above it, 503."""
    user_connections_limit: Annotated[int, Meta(ge=1)] = 20
    """The most of one user on one worker; above it, the oldest is closed."""
    address_connections_limit: Annotated[int, Meta(ge=1)] = 2_000
    """The most from one address on one worker; above it, 429."""
    ping_s: Annotated[float, Meta(ge=0.1)] = 25.0
    """Seconds between pings; a web socket that leaves one unanswered is closed at the next."""
    age_limit_s: Annotated[float, Meta(ge=1)] = 3_600.0
    """Seconds that a connection lasts; then its client brings a new credential."""
    ticket_s: Annotated[int, Meta(ge=1, le=3_600)] = 60
    """Seconds for which a ticket holds."""
