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
    """`host:port` of the Sentinels that know the current primary."""
    sentinel_password: str | None = None
    """The password of the Sentinels, if they have one."""
    cluster: bool = False
    """Whether this is a Redis Cluster; the URL may name any of its nodes."""
    ca_file: str | None = None
    """The certificate authorities trusted for `rediss://`, instead of the system's."""
    timeout_s: Annotated[float, Meta(gt=0, le=60)] = 1.0
    """Seconds that an answer may take. Then the connection is closed and opened again."""


class RedisSettings(RedisServer, frozen=True, kw_only=True):
    """The Redis that processes share."""

    devices_ttl_s: Annotated[int, Meta(ge=1, le=3_600)] = 300
    """Seconds for which a user's devices are cached at most (`cache: redis`). A change ends it at once."""
    prefix: str = "waypost:"
    """The prefix of every key, so that several installations can share one Redis."""


class RedisSourceSettings(RedisServer, frozen=True, kw_only=True):
    """A stream that other programs write."""

    stream: Annotated[str, Meta(min_length=1)]
    """The key of the stream. It is created if missing, and never trimmed."""
    group: Annotated[str, Meta(min_length=1)] = "waypost"
    """The consumer group. A new one begins with the oldest entry."""
    claim_idle_ms: Annotated[int, Meta(ge=100, le=86_400_000)] = 30_000
    """Milliseconds without an acknowledgement after which an entry is given to another reader."""
    dead_letters: Annotated[str, Meta(min_length=1)] | None = None
    """The stream for entries that are refused for good. Default: the stream's name and `.dead`."""

    @property
    def dead_letters_stream(self) -> str:
        """The stream of dead letters as set; by default in the slot of the stream, which a cluster asks for."""
        tagged = f"{{{self.stream}}}" if self.cluster and "{" not in self.stream else self.stream
        return self.dead_letters or f"{tagged}.dead"
