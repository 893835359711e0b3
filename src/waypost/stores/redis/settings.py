"""Settings of Redis."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class RedisServer(Struct, frozen=True, kw_only=True):
    """A Redis: a single server, the primary that Sentinels name, or a cluster."""

    url: str
    """`redis://[[user]:password@]host[:port][/db]`, or `rediss://` for TLS. With `sentinels`, the host is the
    primary's name."""
    sentinels: tuple[str, ...] = ()
    """`host:port` of the Sentinels."""
    sentinel_password: str | None = None
    """Their password."""
    cluster: bool = False
    """Whether this is a Redis Cluster; the URL names any node."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    timeout_s: Annotated[float, Meta(gt=0, le=60)] = 1.0
    """Seconds that an answer may take; then the connection is opened anew."""


class RedisSettings(RedisServer, frozen=True, kw_only=True):
    """The Redis that processes share."""

    devices_ttl_s: Annotated[int, Meta(ge=1, le=3_600)] = 300
    """Seconds for which devices are cached at most; a change ends it at once."""
    prefix: str = "waypost:"
    """The prefix of every key."""


class RedisSourceSettings(RedisServer, frozen=True, kw_only=True):
    """A stream that other programs write."""

    stream: Annotated[str, Meta(min_length=1)]
    """The key of the stream; created if missing, never trimmed."""
    group: Annotated[str, Meta(min_length=1)] = "waypost"
    """The consumer group; a new one begins with the oldest."""
    claim_idle_ms: Annotated[int, Meta(ge=100, le=86_400_000)] = 30_000
    """Milliseconds without acknowledgement after which an entry goes to another reader."""
    dead_letters: Annotated[str, Meta(min_length=1)] | None = None
    """The stream for what is refused for good. Unset: the stream's name and `.dead`."""

    @property
    def dead_letters_stream(self) -> str:
        """The stream of dead letters as set; by default in the slot of the stream, which a cluster asks for."""
        tagged = f"{{{self.stream}}}" if self.cluster and "{" not in self.stream else self.stream
        return self.dead_letters or f"{tagged}.dead"
