"""What a lab can be told before it starts."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec


class LabSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the lab keeps its files, on which ports it answers, and how severe it is. Port 0 means any."""

    directory: Path
    """Credentials are written here when missing; `received.ndjson` goes here when `journal` is on."""
    host: str = "127.0.0.1"
    apns_port: int = 2197
    fcm_port: int = 2198
    webpush_port: int = 2199
    oauth_port: int = 2191
    admin_port: int = 2190

    faults: Path | None = None
    """A YAML file with a list of fault rules that hold from the start."""
    strict: bool = True
    """Also refuse what the vendors' texts call wrong without naming the answer (table in docs/lab.md)."""
    accept_any_token: bool = True
    """Take every well-formed iOS and Android token; off: only those made by `POST /tokens`."""
    journal: bool = False
    """Append one line per accepted push to `received.ndjson`."""

    key_id: str = "ABCDE12345"
    team_id: str = "FGHIJ67890"
    topics: tuple[str, ...] = ("com.example.demo",)
    environment: Literal["production", "sandbox"] = "production"
    project_id: str = "lab-project"

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
    """Where everything answers, with the real ports."""

    apns: str
    fcm: str
    oauth: str
    webpush: str
    admin: str
