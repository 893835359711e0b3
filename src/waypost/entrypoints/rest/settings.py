"""What can be set about the REST API."""

from __future__ import annotations

from msgspec import Struct

from waypost.runtime.listening import TlsSettings

KIB = 1024
MIB = 1024 * KIB


class RestSettings(Struct, frozen=True, kw_only=True):
    """Limits of the HTTP server; there is no CORS: a web page calls it by a path of its own origin."""

    tls: TlsSettings | None = None
    """Connections are encrypted; unset, they are not, which is for the loopback and behind a proxy alone."""
    body_limit_bytes: int = 512 * KIB
    """The largest request body; a notification is 64 KiB at most as stored, JSON escapes may take more."""
    batch_limit_bytes: int = 16 * MIB
    """The largest body of a batch."""
    upload_limit_bytes: int = 2048 * MIB
    """The largest list of recipients that is uploaded."""
    bodies_limit_bytes: int = 64 * MIB
    """All bodies being read at once by one worker; past it, requests are answered 429."""
    headers_limit_bytes: int = 32 * KIB
    """The largest request head (request line and headers)."""
    headers_limit: int = 64
    """The most headers of a request."""
    head_timeout_s: float = 10.0
    """How long a client may take to send a request head."""
    body_timeout_s: float = 30.0
    """How long a client may take to send a body."""
    linger_s: float = 2.0
    """How long an unread body is thrown away before the connection closes, so that the refusal can be read."""
    keep_alive_s: int = 75
    """How long an idle connection is kept, and one whose client does not take its answers."""
    backlog: int = 2048
    """Connections the kernel holds until they are accepted."""
    connections_limit: int = 10_000
    """Connections of one worker; past it, the one that has been idle for the longest is closed."""
    key_cache_s: float = 2.0
    """How long a verified API key is believed without asking the store: a revoked one dies within this time."""
    serve_notify: bool = True
    """Whether `POST /v1/notify` is served."""
    serve_api: bool = True
    """Whether the calls under `/api` are served."""
