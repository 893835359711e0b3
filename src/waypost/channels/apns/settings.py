"""Settings of an app's APNs account (``apps.<app>.apns``)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from waypost.channels.push.fitting import Fit


class ApnsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one team's signing key or one client certificate, for one bundle id in one environment."""

    key_file: str | None = None
    """The ``.p8`` file from Apple's developer pages: an EC key on P-256 as PEM; with ``key_id`` and ``team_id``."""
    key_id: str | None = None
    """10 characters, from the same page."""
    team_id: str | None = None
    """10 characters."""
    certificate_file: str | None = None
    """A client certificate and its private key as PEM, in place of ``key_file``, ``key_id`` and ``team_id``."""
    topic: str
    """The app's bundle id."""
    environment: Literal["production", "sandbox"] = "production"
    """Which of Apple's gateways; tokens of one are unknown to the other."""
    endpoint: str | None = None
    """``https://host:port`` instead of the environment's own."""
    other_endpoint: str | None = None
    """``https://host:port`` instead of the other environment's own; where ``endpoint`` is set, healing needs it."""
    channels_endpoint: str | None = None
    """``https://host:port`` instead of the environment's own, to manage broadcast channels."""
    broadcast_endpoint: str | None = None
    """``https://host:port`` instead of the environment's own, to send to broadcast channels."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    proxy: str | None = None
    """``http://[user:password@]host:port``: connections go through it, by CONNECT."""
    connections: Annotated[int, Meta(ge=1, le=40)] = 25
    """The most connections for visible notifications; each carries up to 1,000 requests at once."""
    silent_connections: Annotated[int, Meta(ge=1, le=5)] = 2
    """The most connections for silent notifications, which are separate from the others."""
    heal_environment: bool = True
    """Tries the other environment once for an unknown token, and remembers which one knows it."""
    critical_alerts: bool = False
    """Whether Apple granted the app the entitlement for critical alerts, which sound even on a muted device."""
    critical_fallback: Literal["time-sensitive", "active", "refuse"] = "time-sensitive"
    """What becomes of ``urgency: critical`` without it: a lower interruption level, or none is sent."""
    fit: Fit = "refuse"
    """Over Apple's limit a notification is refused, or (``trim``) its body, subtitle and title are shortened."""
    bad_token_share: Annotated[float, Meta(gt=0, le=1)] = 0.25
    """The share of unknown tokens among recent answers above which none is removed: a setting is likely wrong."""
    dead_token_codes: tuple[str, ...] = ("Unregistered", "ExpiredToken")
    """The reasons that forget a token. ``BadDeviceToken`` is forgotten when both environments refuse it."""

    @property
    def other_gateway_known(self) -> bool:
        """Whether it is known where the other environment answers."""
        return self.endpoint is None or self.other_endpoint is not None
