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
    """The largest request body."""
    batch_limit_bytes: int = 16 * MIB
    """The largest body of a batch."""
    upload_limit_bytes: int = 2048 * MIB
    """The largest upload of recipients or users."""
    bodies_limit_bytes: int = 64 * MIB
    """All bodies that one worker reads at once; above it, 429."""
    headers_limit_bytes: int = 32 * KIB
    """The largest request head."""
    headers_limit: int = 64
    """The most headers of a request."""
    head_timeout_s: float = 10.0
    """Seconds that a request head may take."""
    body_timeout_s: float = 30.0
    """Seconds that a body may take."""
    linger_s: float = 2.0
    """Seconds for which a refused body is discarded, so that the answer can be read."""
    keep_alive_s: int = 75
    """Seconds that a connection is kept that is idle, or does not read its answers."""
    backlog: int = 2048
    """Connections that the kernel queues."""
    connections_limit: int = 10_000
    """The most connections of one worker; above it, the longest idle is closed."""
    key_cache_s: float = 2.0
    """Seconds within which a revoked key stops working."""
    operating_listen: Listen | None = None
    """An unencrypted address of `/metrics`, then served nowhere else, and `/health/…`. Unset: beside the API."""
    public_url: Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*[^\s?#/])?\Z")] | None = None
    """This API's address from outside, such as `https://push.example.com`."""
    cors_origins: tuple[Origin, ...] = ()
    """Origins of web pages that may call the API, such as `https://app.example.com`."""
    serve_reference: bool = True
    """Whether `/docs` and `/openapi.json` are served."""
    serve_notify: bool = True
    """Whether `POST /v1/notify` is served."""
    serve_api: bool = True
    """Whether the calls under `/api` are served."""
