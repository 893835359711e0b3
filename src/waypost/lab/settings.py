"""What a lab can be told before it starts."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec


class LabSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the lab, the ports on which it answers, and how severe it is. Port 0 means any."""

    directory: Path
    """Credentials are written here when missing; `received.ndjson` goes here when `journal` is on."""
    host: str = "127.0.0.1"
    apns_port: int = 2197
    fcm_port: int = 2198
    webpush_port: int = 2199
    oauth_port: int = 2191
    admin_port: int = 2190
    apns_sandbox_port: int = 0
    """Apple's other environment; this port and those below are any free one unless they are chosen."""
    apns_broadcast_port: int = 0
    apns_channels_port: int = 0
    webpush_http1_port: int = 0
    """A push service that speaks HTTP/1.1 alone (by ALPN)."""
    webpush_plain_port: int = 0
    """A push service without TLS, as on a private network."""
    metadata_port: int = 0
    """The metadata server of a Google machine, which hands out access tokens."""

    faults: Path | None = None
    """A YAML file with a list of fault rules that hold from the start."""
    strict: bool = True
    """Also refuse what the vendors' texts call wrong without naming the answer (table in docs/lab.md)."""
    needs_length: bool = False
    """Answer 411 to a body without `content-length`, as some servers in front of push services do."""
    accept_any_token: bool = True
    """Take every well-formed iOS and Android token; off: only those made by `POST /tokens`."""
    journal: bool = False
    """Append one line per accepted push to `received.ndjson`."""

    key_id: str = "ABCDE12345"
    team_id: str = "FGHIJ67890"
    topics: tuple[str, ...] = ("com.example.demo",)
    environment: Literal["production", "sandbox"] = "production"
    project_id: str = "lab-project"
    project_number: str = "123456789012"
    """Google takes it in place of the id."""

    broadcast_topics: tuple[str, ...] | None = None
    """The bundle ids broadcast is enabled for; absent: all."""
    channel_limit: int = 10_000
    """Channels an app may have (Apple: 10,000 in each environment)."""
    fcm_quota_per_minute: int = 600_000
    """Messages a project may send; the bucket holds one minute's."""
    webpush_max_ttl_s: int = 30 * 86400
    """Push services keep a message no longer, and say so in `TTL`."""

    max_records: int = 1_000_000
    max_bodies: int = 10_000
    fcm_idle_s: float = 240.0
    """FCM says GOAWAY `session_timeout` to a connection without a request for this long."""
    fcm_max_age_s: float = 3600.0
    """FCM says GOAWAY `max_age` to a connection this old."""
    access_token_lifetime_s: int = 3599

    clock: Callable[[], float] = time.time
    """Wall time in UNIX seconds; tests hand in their own."""


class LabUrls(msgspec.Struct, frozen=True):
    """The addresses of everything in the lab, with the real ports."""

    apns: str
    fcm: str
    oauth: str
    webpush: str
    admin: str
    apns_sandbox: str
    apns_broadcast: str
    apns_channels: str
    webpush_http1: str
    webpush_plain: str
    metadata: str
    further: dict[str, str] = {}
    """Of the gateways that came through the entry points, by name."""

    def by_name(self) -> dict[str, str]:
        """Return all addresses by name."""
        own: dict[str, str] = msgspec.structs.asdict(self)
        own.pop("further")
        return own | self.further
