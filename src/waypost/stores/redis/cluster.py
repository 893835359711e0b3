"""A Redis Cluster, by redis-py, which knows the node of each key, redirections and failovers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from redis.asyncio import RedisCluster
from redis.exceptions import NoScriptError, RedisError, ResponseError

from waypost.stores.redis.address import address_of
from waypost.stores.redis.commands import Command, RedisAway, Reply, told
from waypost.stores.redis.outage import Outage
from waypost.stores.redis.settings import RedisServer
from waypost.telemetry import Telemetry

PENDING_LIMIT: Final = 50_000
"""The most commands that may wait for their replies; past it nothing more is taken."""
PAUSE_S: Final = 0.5
"""Seconds for which nobody is sent to a node after a failure; then one caller tries."""


class ClusterClient:
    """See Redis; a pipeline is cut by node, and each node runs its part in order.

    While one node is away all of it counts as away: most pipelines would else wait for that node again and again.
    """

    def __init__(self, settings: RedisServer, telemetry: Telemetry) -> None:
        address = address_of(settings)
        self._timeout_s = settings.timeout_s
        self._outage = Outage(telemetry)
        self._pending = 0
        self._loop = asyncio.get_running_loop()
        self._away_until_s = 0.0
        self._cluster = RedisCluster(
            host=address.host,
            port=address.port,
            username=address.username,
            password=address.password,
            ssl=address.tls is not None,
            ssl_ca_certs=settings.ca_file,
            protocol=2,
            socket_timeout=settings.timeout_s,
            socket_connect_timeout=settings.timeout_s,
        )
        readings = self._cluster.response_callbacks
        for name in [name for name in readings if not name.startswith(("CLUSTER", "COMMAND"))]:
            del readings[name]  # replies are wanted as they come, but what redis-py itself asks

    async def start(self) -> None:
        """See Redis."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._cluster.initialize()
        except (RedisError, OSError, TimeoutError) as failed:
            self._away(failed)

    async def stop(self) -> None:
        """See Redis."""
        await self._cluster.aclose()

    async def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """See Redis."""
        now_s = self._loop.time()
        if now_s < self._away_until_s:
            raise RedisAway("Redis is away")
        if self._pending + len(commands) > PENDING_LIMIT:
            raise RedisAway("too much waits for Redis already")
        if self._away_until_s:
            self._away_until_s = now_s + self._timeout_s  # this one tries it, the others are told at once
        self._pending += len(commands)
        try:
            async with asyncio.timeout(self._timeout_s):
                replies = await self._exchange(commands)
                unknown = [n for n, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
                again = await self._exchange([told(commands[n]) for n in unknown]) if unknown else []
        except (RedisError, OSError, TimeoutError) as failed:
            raise self._away(failed) from None
        finally:
            self._pending -= len(commands)
        for n, reply in zip(unknown, again, strict=True):
            replies[n] = reply
        for reply in replies:
            if isinstance(reply, Exception):
                raise self._error_of(reply)
        self._away_until_s = 0
        self._outage.ended()
        return replies

    async def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        pipeline = self._cluster.pipeline()
        for command in commands:
            pipeline.execute_command(*command)
        return await pipeline.execute(raise_on_error=False)

    def _error_of(self, reply: Exception) -> RedisAway:
        if isinstance(reply, ResponseError):
            return RedisAway(f"Redis answers {type(reply).__name__}")
        return self._away(reply)

    def _away(self, failed: Exception) -> RedisAway:
        self._away_until_s = self._loop.time() + PAUSE_S
        self._outage.began(type(failed).__name__)
        return RedisAway(f"Redis is away: {type(failed).__name__}")
