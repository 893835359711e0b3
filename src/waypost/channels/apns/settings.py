"""Settings of an app's APNs account (``apps.<app>.apns``)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from waypost.channels.push.fitting import Fit

MOST_CONNECTIONS: Final = 40
HOSTS: Final = {"production": "https://api.push.apple.com", "sandbox": "https://api.sandbox.push.apple.com"}


class ApnsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one team's signing key or one client certificate, for one bundle id in one environment."""

    key_file: str | None = None
    """The ``.p8`` file from Apple's developer pages; with ``key_id`` and ``team_id``."""
    key_id: str | None = None
    """10 characters."""
    team_id: str | None = None
    """10 characters."""
    certificate_file: str | None = None
    """A client certificate with its private key (PEM), in place of the key."""
    topic: str
    """The app's bundle id."""
    environment: Literal["production", "sandbox"] = "production"
    """Which of Apple's gateways; each knows its own tokens alone."""
    endpoint: str | None = None
    """``https://host:port`` instead of the environment's own."""
    other_endpoint: str | None = None
    """The same for the other environment; beside ``endpoint``, healing needs it."""
    channels_endpoint: str | None = None
    """The same for managing broadcast channels."""
    broadcast_endpoint: str | None = None
    """The same for sending to broadcast channels."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    proxy: str | None = None
    """``http://[user:password@]host:port``, asked by CONNECT."""
    connections: Annotated[int, Meta(ge=1, le=MOST_CONNECTIONS)] = 25
    """The most for visible notifications; each carries 1,000 requests at once."""
    silent_connections: Annotated[int, Meta(ge=1, le=5)] = 2
    """The most for silent notifications, beside the others."""
    heal_environment: bool = True
    """Tries the other environment once for an unknown token, and remembers which knows it."""
    critical_alerts: bool = False
    """Whether the app has Apple's entitlement for critical alerts."""
    critical_fallback: Literal["time-sensitive", "active", "refuse"] = "time-sensitive"
    """What ``urgency: critical`` becomes without it: a lower interruption level, or nothing is sent."""
    fit: Fit = "refuse"
    """Over the provider's limit: refused, or body, subtitle and title shortened (``trim``)."""
    bad_token_share: Annotated[float, Meta(gt=0, le=1)] = 0.25
    """The share of unknown tokens among recent answers above which none is removed."""
    dead_token_codes: tuple[str, ...] = ("Unregistered", "ExpiredToken")
    """The reasons that forget a token; ``BadDeviceToken`` does when both environments say it."""

    @property
    def other_gateway_known(self) -> bool:
        """Whether it is known where the other environment answers."""
        return self.endpoint is None or self.other_endpoint is not None
