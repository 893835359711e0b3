"""The check of a Redis, by what it says of itself, for ``check-config``."""

from __future__ import annotations

from msgspec import Struct

from waypost.stores.redis.commands import Redis

OLDEST = (7, 0)
"""The first version whose XAUTOCLAIM leaves out what was deleted."""


class RedisFindings(Struct, frozen=True):
    """The findings on what runs there, and what speaks against it."""

    version: str
    append_only: bool
    """Whether it has its data again after a restart."""
    eviction: str
    """The eviction: ``noeviction``, or how it makes room when its memory is full."""

    @property
    def too_old(self) -> bool:
        """Whether something that is needed is missing."""
        return tuple(int(part) for part in self.version.split(".")[:2]) < OLDEST


async def look(redis: Redis) -> RedisFindings:
    """Ask one server; RedisAway where it cannot be asked."""
    (told,) = await redis.execute([("INFO",)])
    fields = dict(line.split(":", 1) for line in told.decode().splitlines() if ":" in line)
    return RedisFindings(fields["redis_version"], fields["aof_enabled"] == "1", fields["maxmemory_policy"])
