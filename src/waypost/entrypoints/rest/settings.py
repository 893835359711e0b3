"""Settings of the REST API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.runtime.listening import Listen, TlsSettings

Origin = Annotated[str, Meta(pattern=r"^https?://[A-Za-z0-9.\-:\[\]]+\Z")]
"""A scheme, a host and a port, as a browser sends them (RFC 6454 section 6.2)."""
KIB = 1024
MIB = 1024 * KIB


class RestSettings(Struct, frozen=True, kw_only=True):
    """Settings of the HTTP server: its limits, and what it serves."""

    tls: TlsSettings | None = None
    """Connections are encrypted; unset, they are not, which is for the loopback and behind a proxy alone."""
    body_limit_bytes: int = 512 * KIB
    """The largest request body; a notification is 64 KiB at most as stored, JSON escapes may take more."""
    batch_limit_bytes: int = 16 * MIB
    """The largest body of a batch."""
    upload_limit_bytes: int = 2048 * MIB
    """The largest list of recipients that is uploaded."""
    bodies_limit_bytes: int = 64 * MIB
    """The total size of the bodies that one worker reads at once; above it, 429."""
    headers_limit_bytes: int = 32 * KIB
    """The largest request head (request line and headers)."""
    headers_limit: int = 64
    """The most headers of a request."""
    head_timeout_s: float = 10.0
    """Seconds that a client may take to send a request head."""
    body_timeout_s: float = 30.0
    """Seconds that a client may take to send a body."""
    linger_s: float = 2.0
    """Seconds for which the rest of a refused body is discarded, so that the client can read the answer."""
    keep_alive_s: int = 75
    """Seconds that an idle connection is kept, and one whose client does not read its answers."""
    backlog: int = 2048
    """Connections that the kernel queues until they are accepted."""
    connections_limit: int = 10_000
    """The most connections of one worker; above it, the one idle for longest is closed."""
    key_cache_s: float = 2.0
    """Seconds that a verified API key is cached: a revoked key stops working within this time."""
    operating_listen: Listen | None = None
    """An unencrypted address of `/metrics` and `/health/…`; `/metrics` is then served nowhere else. Unset, they are
    beside the API."""
    public_url: Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*[^\s?#/])?\Z")] | None = None
    """The address at which devices and providers reach this API from outside, such as `https://push.example.com`."""
    cors_origins: tuple[Origin, ...] = ()
    """Origins of web pages that may call the API with tokens of their users, each in full, such as
    `https://app.example.com`."""
    serve_reference: bool = True
    """Whether the reference page `/docs` and `/openapi.json` are served."""
    serve_notify: bool = True
    """Whether `POST /v1/notify` is served."""
    serve_api: bool = True
    """Whether the calls under `/api` are served."""
