"""The address of a Redis, from its URL."""

from __future__ import annotations

import ssl
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from waypost.domain.errors import ConfigurationError
from waypost.stores.redis.settings import RedisServer

DEFAULT_PORT = 6379
SENTINEL_PORT = 26379


class Address(Struct, frozen=True):
    """A server, or with Sentinels the name of a primary, and how to speak to it."""

    host: str
    port: int
    db: int
    username: str | None
    password: str | None
    tls: ssl.SSLContext | None


def address_of(settings: RedisServer) -> Address:
    """Read the URL; ConfigurationError says what is wrong and repeats none of it, since it may hold a secret."""
    try:
        parts = urlsplit(settings.url)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise ConfigurationError("redis.url", "is no URL with a host and a port") from None
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ConfigurationError("redis.url", "expected redis://host:port/db, or rediss:// for TLS")
    db = parts.path.strip("/") or "0"
    if not db.isascii() or not db.isdigit():
        raise ConfigurationError("redis.url", "what follows the host is the number of a database")
    if settings.cluster and (settings.sentinels or db != "0"):
        raise ConfigurationError("redis.cluster", "a cluster has neither Sentinels nor a database other than 0")
    username, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    tls = _trust(settings) if parts.scheme == "rediss" else None
    return Address(parts.hostname, port, int(db), username or None, password, tls)


def sentinels_of(settings: RedisServer) -> tuple[tuple[str, int], ...]:
    """Return host and port of each Sentinel."""
    found = []
    for n, text in enumerate(settings.sentinels):
        try:
            parts = urlsplit(f"//{text}")
            host, port = parts.hostname, parts.port or SENTINEL_PORT
        except ValueError:
            host, port = None, 0
        if not host:
            raise ConfigurationError(f"redis.sentinels[{n}]", "expected host:port")
        found.append((host, port))
    return tuple(found)


def _trust(settings: RedisServer) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError):
        raise ConfigurationError("redis.ca_file", "cannot be read as certificates in PEM") from None
