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
    """The secret by which receivers verify our signature: `whsec_` and 24 to 64 bytes in base64. Needed by the format
    `standard`."""
    old_secret_file: str | None = None
    """The secret before it, while receivers change over: both sign."""
    allow_endpoints: tuple[str, ...] = ("*",)
    """The receivers that addresses may name: host names, ``*.`` for any labels in front, ``https://host[:port][/path]``,
    which may be in a private network, ``http://host:port`` in a private network, or ``*`` for any public host."""
    format: BodyFormat = BodyFormat.STANDARD
    """The body: our own (`standard`), or what the incoming webhooks of `slack`, `teams` or `discord` read."""
    status_url: str | None = None
    """The URL that is told how each notification fares, where its submission has no `webhook_url`. Bulk jobs are told
    of to nobody."""
    statuses: tuple[ToldStatus, ...] = ()
    """The statuses that are told, of notifications and of deliveries. Unset is all."""
    status_batch: Annotated[int, Meta(ge=1, le=1000)] = 1
    """The most status changes in one request to `status_url`; from 2 on its body is a batch, always. Needs the format
    `standard`."""
    status_batch_wait_ms: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Milliseconds for which a batch waits for more after its first status change."""
    ca_file: str | None = None
    """The certificate authorities to trust, instead of the system's."""
    proxy: str | None = None
    """`http://[user:password@]host:port`: connections go through it, by CONNECT to the address that was checked."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 4
    """The most connections to each receiver."""
    receivers: Annotated[int, Meta(ge=1, le=1000)] = 256
    """The most receivers connected at once; the one unused for longest is disconnected first."""

    @property
    def push_services(self) -> int:
        """The same, as the pools of push services call it."""
        return self.receivers
