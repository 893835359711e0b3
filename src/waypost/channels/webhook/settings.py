"""Settings of an app's webhooks (``apps.<app>.webhook``)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.domain.channel import Channel
from waypost.domain.words import Words

CHANNEL: Final = Channel("webhook")


class BodyFormat(Words):
    """The body that a receiver reads: ours, or the incoming webhooks of a chat."""

    STANDARD = "standard"
    SLACK = "slack"
    TEAMS = "teams"
    DISCORD = "discord"


class ToldStatus(Words):
    """The status changes that can be told: of notifications, and of deliveries."""

    SENT = "sent"
    PARTIAL = "partial"
    DELIVERED = "delivered"
    OPENED = "opened"
    FAILED = "failed"
    EXPIRED = "expired"
    SUPPRESSED = "suppressed"
    CANCELLED = "cancelled"
    NO_TARGETS = "no_targets"
    UNKNOWN = "unknown"


class WebhookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of which receivers may be called, how messages are signed, and what is in them."""

    secret_file: str | None = None
    """The secret of our signatures: `whsec_` and 24 to 64 bytes in base64; `standard` needs it."""
    old_secret_file: str | None = None
    """The secret before, while receivers change over: both sign."""
    allow_endpoints: tuple[str, ...] = ("*",)
    """Receivers that may be named: hosts, ``*.`` for any labels in front, ``https://host[:port][/path]`` (in a private
    network too), ``http://host:port`` in a private network, or ``*`` for any public host."""
    format: BodyFormat = BodyFormat.STANDARD
    """The body: our own (`standard`), or that of an incoming webhook."""
    status_url: str | None = None
    """Told how notifications fare whose submission has no `webhook_url`; not of bulk jobs."""
    statuses: tuple[ToldStatus, ...] = ()
    """The statuses that are told. Unset: all."""
    status_batch: Annotated[int, Meta(ge=1, le=1000)] = 1
    """The most changes in a request to `status_url`; from 2 on its body is always a batch. Needs `standard`."""
    status_batch_wait_ms: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Milliseconds for which a batch waits for more."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    proxy: str | None = None
    """As for APNs; CONNECT names the address that was checked."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 4
    """The most connections to each receiver."""
    receivers: Annotated[int, Meta(ge=1, le=1000)] = 256
    """The most receivers connected at once."""

    @property
    def push_services(self) -> int:
        """The same, as the pools of push services call it."""
        return self.receivers
