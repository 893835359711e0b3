"""The push services we are connected to: one pool and one signed identity for each origin, a bounded number."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from waypost.channels.push.addresses import AllowedRange, within_reach
from waypost.channels.push.endpoints import Endpoint
from waypost.channels.push.http1 import Fields, Http1
from waypost.channels.push.origin import path_field, post_to, sized, trust
from waypost.channels.push.patience import Until
from waypost.channels.push.vapid import LIFETIME_MS, RENEW_BEFORE_MS, Vapid
from waypost.domain.time import Instant, later
from waypost.http2 import (
    NotHttp2,
    Origin,
    Pool,
    PoolEvent,
    PoolSettings,
    Proxy,
    Result,
    Unsent,
    addresses,
    dial,
    encode_headers,
)

IDLE_S = 300.0
HTTP1_S = 3600.0
"""Seconds after which HTTP/2 is tried again at a service that did not speak it."""
P = TypeVar("P", bound=asyncio.Protocol)


class Trusts(Struct, frozen=True):
    """The TLS contexts of the two protocols: a context says which one it wants."""

    http2: ssl.SSLContext
    http1: ssl.SSLContext


def trusts_of(section: str, ca_file: str | None) -> Trusts:
    """Build both contexts from a section of the settings; ConfigurationError names ``<section>.ca_file``."""
    return Trusts(http2=trust(section, ca_file), http1=trust(section, ca_file, "http/1.1"))


class ServiceLimits(Protocol):
    """Limits of what is opened, from the settings of a sender."""

    @property
    def connections(self) -> int:
        """The most connections to each push service."""
        ...

    @property
    def push_services(self) -> int:
        """The most push services connected at once."""
        ...


class Head(Struct, frozen=True):
    """The headers beside path and authorization, as HTTP/1.1 wants them, and ready for HTTP/2."""

    fields: Fields
    block: bytes


def head_of(fields: Fields) -> Head:
    """Encode *fields*, once for all who share them."""
    return Head(fields, encode_headers([(name.encode(), value.encode()) for name, value in fields]))


Post = tuple[Head, bytes, str, Any]
"""A message to a subscription: the headers it shares, a body, a path, and what its sender knows it by."""


class PushService:
    """A push service: one origin, over HTTP/2, or over HTTP/1.1 where it agrees on nothing better."""

    def __init__(
        self,
        endpoint: Endpoint,
        connections: int,
        vapid: Vapid | None,
        trusts: Trusts,
        loop: asyncio.AbstractEventLoop,
        on_event: Callable[[PoolEvent], None],
        proxy: Proxy | None,
    ) -> None:
        self.endpoint = endpoint
        """The endpoint that it was opened for: its origin is that of all here."""
        self._connections = connections
        self._trusts = trusts
        self._proxy = proxy
        self._loop = loop
        self._resolve = within_reach(addresses, endpoint.reach)
        self._pool = Pool(
            Origin(endpoint.host, endpoint.port, trusts.http2, proxy=proxy),
            PoolSettings(min_connections=0, max_connections=connections, idle_timeout_s=IDLE_S, max_streams=100),
            loop=loop,
            on_event=on_event,
            dial=self._dial,
        )
        # Nothing but HTTP/1.1 is spoken without TLS, so that there is nothing to try.
        self._http1_until_s = 0.0 if endpoint.scheme == "https" else math.inf
        self._http1: Http1 | None = None
        self._pseudo_head = post_to(endpoint.authority)
        self._vapid = vapid
        self._authorization: Fields = ()
        self._authorization_block = b""
        self._renew_at = Instant(0)

    @property
    def busy(self) -> bool:
        """Whether a request has not ended."""
        stats = self._pool.stats
        return bool(stats.in_flight or stats.queued or (self._http1 is not None and self._http1.in_flight))

    @property
    def connections(self) -> int:
        """The number of open connections over HTTP/2."""
        return self._pool.stats.connections

    async def start(self) -> None:
        """Begin to connect."""
        await self._pool.start()

    def post(
        self, head: Head, body: bytes, path: str, now: Instant, until: Until, on_result: Callable[[Result], None]
    ) -> None:
        """Post one message to the subscription at *path*; *on_result* is called once, never before this returns."""
        self.post_all([(head, body, path, on_result)], now, until, _tell_each)

    def post_all(
        self, posts: Sequence[Post], now: Instant, until: Until, on_results: Callable[[list[tuple[Any, Result]]], None]
    ) -> None:
        """Post several as `post` posts each; *on_results* is called with those that have ended since its last call."""
        self._renew(now)
        if self._loop.time() < self._http1_until_s:
            self._post_over_http1(posts, until, on_results)
            return
        before, authorization = self._pseudo_head, self._authorization_block
        requests = [
            (b"".join((before, path_field(post[2]), sized(len(post[1])), authorization, post[0].block)), post[1], post)
            for post in posts
        ]
        self._pool.request_all(requests, until.deadline, partial(self._ended, until, on_results), until.answer_by)

    async def drain(self, timeout_s: float) -> None:
        """Let requests in flight end, then those that the pool could not send for want of HTTP/2."""
        ends_s = self._loop.time() + timeout_s
        await self._pool.drain(timeout_s)
        if self._http1 is not None:
            await self._http1.drain(max(0.0, ends_s - self._loop.time()))

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()
        if self._http1 is not None:
            await self._http1.close()

    def _ended(
        self, until: Until, on_results: Callable[[list[tuple[Any, Result]]], None], ended: list[tuple[Post, Result]]
    ) -> None:
        """Post over HTTP/1.1 what could not be sent for want of HTTP/2; report any other result."""
        if self._loop.time() < self._http1_until_s:
            if again := [post for post, result in ended if isinstance(result, Unsent)]:
                self._post_over_http1(again, until, on_results)
            ended = [each for each in ended if not isinstance(each[1], Unsent)]
        if ended:
            on_results([(post[3], result) for post, result in ended])

    def _post_over_http1(
        self, posts: Iterable[Post], until: Until, on_results: Callable[[list[tuple[Any, Result]]], None]
    ) -> None:
        if self._http1 is None:
            self._http1 = Http1(self.endpoint, self._trusts.http1, self._resolve, self._connections, self._proxy)
        for head, body, path, of in posts:
            ended = partial(_tell_one, on_results, of)
            self._http1.request(path, (*self._authorization, *head.fields), body, until, ended)

    async def _dial(self, origin: Origin, protocol: Callable[[], P], timeout_s: float) -> P:
        try:
            return await dial(origin, protocol, timeout_s, self._resolve)
        except NotHttp2:
            self._http1_until_s = self._loop.time() + HTTP1_S
            raise

    def _renew(self, now: Instant) -> None:
        """Renew the signed identity, which stays the same for 11 hours."""
        too_far_ahead = self._renew_at - now > LIFETIME_MS
        if self._vapid is not None and (now >= self._renew_at or too_far_ahead):
            said = self._vapid.authorization(self.endpoint.origin, now)
            self._authorization = (("authorization", said),)
            self._authorization_block = encode_headers([(b"authorization", said.encode())])
            self._renew_at = later(now, LIFETIME_MS - RENEW_BEFORE_MS)


class PushServices:
    """The push services in use; the one unused for longest makes room for a new one."""

    def __init__(
        self,
        limits: ServiceLimits,
        vapid: Vapid | None,
        trusts: Trusts,
        loop: asyncio.AbstractEventLoop,
        on_event: Callable[[PoolEvent], None],
        proxy: Proxy | None = None,
    ) -> None:
        """Connect by way of *proxy* where one is given: it is asked for addresses that were checked, not for names."""
        self._proxy = None if proxy is None else replace(proxy, by_address=True)
        self._limits = limits
        self._vapid = vapid
        self._trusts = trusts
        self._loop = loop
        self._on_event = on_event
        self._services: OrderedDict[tuple[str, AllowedRange], PushService] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def at(self, endpoint: Endpoint) -> PushService | None:
        """Find or open the service of *endpoint*; None while all that may be open are busy."""
        key = (endpoint.origin, endpoint.reach)
        service = self._services.get(key)
        if service is not None:
            self._services.move_to_end(key)
            return service
        if len(self._services) >= self._limits.push_services and not self._make_room():
            return None
        service = self._services[key] = PushService(
            endpoint, self._limits.connections, self._vapid, self._trusts, self._loop, self._on_event, self._proxy
        )
        self._begin(service.start())
        return service

    def connections(self) -> int:
        """Open connections to all of them."""
        return sum(service.connections for service in self._services.values())

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        services = list(self._services.values())
        await asyncio.gather(*(service.drain(timeout_s) for service in services))
        await asyncio.gather(*(service.close() for service in services), *self._tasks)

    def _make_room(self) -> bool:
        for key, service in self._services.items():
            if not service.busy:
                del self._services[key]
                self._begin(service.close())
                return True
        return False

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _tell_each(ended: Iterable[tuple[Callable[[Result], None], Result]]) -> None:
    for on_result, result in ended:
        on_result(result)


def _tell_one(on_results: Callable[[list[tuple[Any, Result]]], None], of: object, result: Result) -> None:
    on_results([(of, result)])
