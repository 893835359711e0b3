"""What an operator can choose about Redis."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class RedisServer(Struct, frozen=True, kw_only=True):
    """One Redis: a single server, the primary that Sentinels name, or a cluster."""

    url: str
    """`redis://[[user]:password@]host[:port][/db]`, `rediss://` for TLS; with `sentinels` the host is the name of the
    primary."""
    sentinels: tuple[str, ...] = ()
    """`host:port` of the Sentinels that know where the primary is now."""
    sentinel_password: str | None = None
    """The Sentinels' own password, where they have one."""
    cluster: bool = False
    """Whether it is a Redis Cluster; the URL names any of its nodes."""
    ca_file: str | None = None
    """Trust these authorities alone for `rediss://`, instead of the system's."""
    timeout_s: Annotated[float, Meta(gt=0, le=60)] = 1.0
    """How long an answer may take; then the connection is given up and made anew."""


class RedisSettings(RedisServer, frozen=True, kw_only=True):
    """The Redis that processes share."""

    devices_ttl_s: Annotated[int, Meta(ge=1, le=3_600)] = 300
    """How long a user's devices are cached at most, where `cache` is `redis`; every change ends it at once."""
    prefix: str = "waypost:"
    """What the name of every key begins with, so that several installations can share one Redis."""


class RedisSourceSettings(RedisServer, frozen=True, kw_only=True):
    """A stream that other programs write."""

    stream: Annotated[str, Meta(min_length=1)]
    """The key of the stream; it is made where it is missing, and never trimmed."""
    group: Annotated[str, Meta(min_length=1)] = "waypost"
    """The consumer group; made where it is missing, to begin with the oldest entry there is."""
    claim_idle_ms: Annotated[int, Meta(ge=100, le=86_400_000)] = 30_000
    """After how long without an acknowledgement an entry goes to another reader, milliseconds."""
    dead_letters: Annotated[str, Meta(min_length=1)] | None = None
    """The stream for what is refused for good; unset, the stream's name and `.dead`."""

    @property
    def dead_letters_stream(self) -> str:
        """As set; by default in the slot of the stream, which a cluster asks for."""
        tagged = f"{{{self.stream}}}" if self.cluster and "{" not in self.stream else self.stream
        return self.dead_letters or f"{tagged}.dead"
