"""Settings of a lab."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec


class LabSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the lab, the ports on which it answers, and how severe it is. Port 0 means any."""

    directory: Path
    """The folder of credentials, written when missing, and of `received.ndjson` when `journal` is on."""
    host: str = "127.0.0.1"
    apns_port: int = 2197
    fcm_port: int = 2198
    webpush_port: int = 2199
    oauth_port: int = 2191
    admin_port: int = 2190
    apns_sandbox_port: int = 0
    """The port of Apple's other environment; this port and those below are any free one unless they are chosen."""
    apns_broadcast_port: int = 0
    apns_channels_port: int = 0
    webpush_http1_port: int = 0
    """The port of a push service that speaks HTTP/1.1 alone (by ALPN)."""
    webpush_plain_port: int = 0
    """The port of a push service without TLS, as on a private network."""
    browsers_port: int = 0
    """The port that Firefox connects to (`dom.push.serverURL`)."""
    metadata_port: int = 0
    """The port of a Google machine's metadata server, which hands out access tokens."""

    further_ports: dict[str, int] = {}
    """The ports of gateways that came through the entry points, by the name of their address."""

    faults: Path | None = None
    """A YAML file with a list of fault rules that hold from the start."""
    strict: bool = True
    """Whether what the vendors' texts call wrong without naming the answer is refused (docs/internals)."""
    needs_length: bool = False
    """Whether a body without `content-length` is answered 411, as by some servers in front of push services."""
    accept_any_token: bool = True
    """Whether every well-formed iOS and Android token is taken; off: only those made by `POST /tokens`."""
    journal: bool = False
    """Whether one line per accepted push is appended to `received.ndjson`."""

    key_id: str = "ABCDE12345"
    team_id: str = "FGHIJ67890"
    topics: tuple[str, ...] = ("com.example.demo",)
    environment: Literal["production", "sandbox"] = "production"
    project_id: str = "lab-project"
    project_number: str = "123456789012"
    """The project's number, which Google takes in place of the id."""

    broadcast_topics: tuple[str, ...] | None = None
    """The bundle ids broadcast is enabled for; absent: all."""
    channel_limit: int = 10_000
    """The most channels an app may have (Apple: 10,000 in each environment)."""
    fcm_quota_per_minute: int = 600_000
    """Messages a project may send per minute; the bucket holds one minute's."""
    webpush_max_ttl_s: int = 30 * 86400
    """The longest that push services keep a message, seconds, as they say in `TTL`."""

    max_records: int = 1_000_000
    max_bodies: int = 10_000
    fcm_idle_s: float = 240.0
    """Seconds without a request after which FCM sends GOAWAY `session_timeout`."""
    fcm_max_age_s: float = 3600.0
    """Seconds of a connection's age after which FCM sends GOAWAY `max_age`."""
    access_token_lifetime_s: int = 3599

    clock: Callable[[], float] = time.time
    """The wall clock in UNIX seconds; tests give their own."""


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
    browsers: str
    metadata: str
    further: dict[str, str] = {}
    """The addresses of the gateways that came through the entry points, by name."""

    def by_name(self) -> dict[str, str]:
        """Return all addresses by name."""
        own: dict[str, str] = msgspec.structs.asdict(self)
        own.pop("further")
        return own | self.further
