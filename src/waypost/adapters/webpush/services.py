"""The push services we are connected to: one pool and one signed identity for each origin, a bounded number."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable, Coroutine

from waypost.adapters.push.origin import post_to
from waypost.adapters.webpush.endpoints import Endpoint
from waypost.adapters.webpush.families import family_of
from waypost.adapters.webpush.settings import WebPushSettings
from waypost.adapters.webpush.vapid import LIFETIME_MS, RENEW_BEFORE_MS, Vapid
from waypost.domain.time import Instant, later
from waypost.http2 import Origin, Pool, PoolEvent, PoolSettings, encode_headers

IDLE_S = 300.0


class PushService:
    """One origin."""

    def __init__(self, endpoint: Endpoint, vapid: Vapid, pool: Pool) -> None:
        self.pool = pool
        self.family = family_of(endpoint)
        self.pseudo_head = post_to(endpoint.authority)
        self._audience = endpoint.origin
        self._vapid = vapid
        self._authorization = b""
        self._renew_at = Instant(0)

    def authorization(self, now: Instant) -> bytes:
        """The header block that says who we are; the same for 11 hours."""
        too_far_ahead = self._renew_at - now > LIFETIME_MS
        if now >= self._renew_at or too_far_ahead:
            value = self._vapid.authorization(self._audience, now)
            self._authorization = encode_headers([(b"authorization", value.encode())])
            self._renew_at = later(now, LIFETIME_MS - RENEW_BEFORE_MS)
        return self._authorization


class PushServices:
    """Finds or opens the service of an endpoint; the one unused for longest makes room for a new one."""

    def __init__(
        self,
        settings: WebPushSettings,
        vapid: Vapid,
        tls: ssl.SSLContext,
        loop: asyncio.AbstractEventLoop,
        on_event: Callable[[PoolEvent], None],
    ) -> None:
        self._settings = settings
        self._vapid = vapid
        self._tls = tls
        self._loop = loop
        self._on_event = on_event
        self._services: OrderedDict[str, PushService] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def at(self, endpoint: Endpoint) -> PushService | None:
        """The service of *endpoint*; None while all that may be open are busy."""
        service = self._services.get(endpoint.origin)
        if service is not None:
            self._services.move_to_end(endpoint.origin)
            return service
        if len(self._services) >= self._settings.push_services and not self._make_room():
            return None
        service = self._services[endpoint.origin] = PushService(endpoint, self._vapid, self._pool(endpoint))
        self._begin(service.pool.start())
        return service

    def connections(self) -> int:
        """Open connections to all of them."""
        return sum(service.pool.stats.connections for service in self._services.values())

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        pools = [service.pool for service in self._services.values()]
        await asyncio.gather(*(pool.drain(timeout_s) for pool in pools))
        await asyncio.gather(*(pool.close() for pool in pools), *self._tasks)

    def _pool(self, endpoint: Endpoint) -> Pool:
        settings = PoolSettings(
            min_connections=0, max_connections=self._settings.connections, idle_timeout_s=IDLE_S, max_streams=100
        )
        origin = Origin(endpoint.host, endpoint.port, self._tls)
        return Pool(origin, settings, loop=self._loop, on_event=self._on_event)

    def _make_room(self) -> bool:
        for origin, service in self._services.items():
            stats = service.pool.stats
            if not stats.in_flight and not stats.queued:
                del self._services[origin]
                self._begin(service.pool.close())
                return True
        return False

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
