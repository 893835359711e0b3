"""What an operator can choose about Redis."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class RedisSettings(Struct, frozen=True, kw_only=True):
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
    devices_ttl_s: Annotated[int, Meta(ge=1, le=3_600)] = 300
    """How long a user's devices are cached at most, where `cache` is `redis`; every change ends it at once."""
    prefix: str = "waypost:"
    """What the name of every key begins with, so that several installations can share one Redis."""
