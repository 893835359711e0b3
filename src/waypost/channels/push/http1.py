"""Push services that speak no HTTP/2, through the library client; results of requests are the same."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from waypost.channels.push.endpoints import Endpoint
from waypost.channels.push.patience import Until
from waypost.http2 import Address, Answer, DialError, Lost, Proxy, Resolve, Result, Unknown, Unsent, addresses

ANSWER_LIMIT_BYTES = 65_536
Fields = tuple[tuple[str, str], ...]


class _Progress:
    """The progress of one request: before its first byte was written, the server provably took nothing."""

    def __init__(self, until: Until, patience: asyncio.Timeout) -> None:
        self.written = False
        self._until = until
        self._patience = patience

    def was_written(self) -> None:
        """Wait for the answer from now on, since the head is written."""
        self.written = True
        if not self._patience.expired():
            self._patience.reschedule(self._until.answer_by)

    def ended(self, reason: str, kind: Lost = Lost.CONNECTION_LOST) -> Result:
        """Build the result of a request that got no answer."""
        return Unknown(reason, kind) if self.written else Unsent(reason)


def _tracing() -> aiohttp.TraceConfig:
    """Return a trace that tells each request's progress when its head is written."""

    async def headers_written(_session: aiohttp.ClientSession, context: Any, _params: Any) -> None:
        context.trace_request_ctx.was_written()

    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(headers_written)
    return tracing


class Http1:
    """A client of one origin, each request a task; at most *connections* at once, what is more waits.

    By way of a *proxy* it connects to what *resolve* finds: the proxy is asked for addresses, never for the name.
    """

    def __init__(
        self, endpoint: Endpoint, tls: ssl.SSLContext, resolve: Resolve, connections: int, proxy: Proxy | None = None
    ) -> None:
        self._endpoint = endpoint
        self._resolve = resolve
        self._proxy = None if proxy is None else _as_the_library_names(proxy)
        self._loop = asyncio.get_running_loop()
        connector = aiohttp.TCPConnector(
            ssl=tls,
            limit=connections,
            resolver=_Resolver(resolve if proxy is None else addresses),
            use_dns_cache=False,
            keepalive_timeout=60,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            timeout=aiohttp.ClientTimeout(total=None),  # the deadline of each request counts
            trace_configs=[_tracing()],
        )
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def in_flight(self) -> int:
        """The number of requests that have not ended."""
        return len(self._tasks)

    def request(
        self, path: str, fields: Fields, body: bytes, until: Until, on_result: Callable[[Result], None]
    ) -> None:
        """Send a POST; one that waits for a connection at the deadline is Unsent. *on_result* is called once, later."""
        task = self._loop.create_task(self._ask(path, fields, body, until, on_result))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def post(self, path: str, fields: Fields, body: bytes, until: Until) -> Result:
        """Send a POST as `request` does, for one who waits for its result."""
        results: list[Result] = []
        await self._ask(path, fields, body, until, results.append)
        return results[0]

    async def drain(self, timeout_s: float) -> None:
        """Wait until all have ended, at most *timeout_s*."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)

    async def close(self) -> None:
        """End what has not ended, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    async def _ask(
        self, path: str, fields: Fields, body: bytes, until: Until, on_result: Callable[[Result], None]
    ) -> None:
        patience = asyncio.timeout_at(until.deadline)
        progress = _Progress(until, patience)
        result: Result = Unsent("it did not begin")
        try:
            async with patience:
                result = await self._post(path, fields, body, progress)
        except TimeoutError:
            why = "no answer before the deadline" if progress.written else "deadline passed before it was sent"
            result = progress.ended(why, Lost.TIMEOUT)
        except DialError as error:
            result = Unsent(str(error))
        except aiohttp.ClientHttpProxyError as error:
            result = Unsent(f"the proxy answers {error.status}")
        except aiohttp.ClientConnectorError as error:
            result = progress.ended(f"cannot connect to {error.host}: {error.strerror or 'no address'}")
        except aiohttp.ClientError as error:
            result = progress.ended(f"HTTP/1.1: {type(error).__name__}")
        except asyncio.CancelledError:
            result = progress.ended("the client was closed before the answer came")
            raise
        finally:
            on_result(result)

    async def _post(self, path: str, fields: Fields, body: bytes, progress: _Progress) -> Answer:
        """Post to the origin, by way of the proxy where there is one; the next address where that reaches none."""
        endpoint = self._endpoint
        if self._proxy is None:
            return await self._exchange(endpoint.origin + path, fields, body, progress, {})
        fields = (("host", endpoint.authority), *fields)
        options = {"server_hostname": endpoint.host, **self._proxy}
        found = await self._resolve(endpoint.host, endpoint.port)
        for address in found[:-1]:
            with suppress(aiohttp.ClientHttpProxyError):
                return await self._exchange(self._at(address) + path, fields, body, progress, options)
        return await self._exchange(self._at(found[-1]) + path, fields, body, progress, options)

    def _at(self, address: Address) -> str:
        """Name the origin by its address."""
        host = str(address[4][0])
        return f"{self._endpoint.scheme}://{f'[{host}]' if ':' in host else host}:{self._endpoint.port}"

    async def _exchange(
        self, url: str, fields: Fields, body: bytes, progress: _Progress, options: Mapping[str, Any]
    ) -> Answer:
        """Post, and return the answer, redirects included, with no more of its body than the limit."""
        async with self._session.post(
            URL(url, encoded=True),
            headers=fields,
            data=body,
            allow_redirects=False,
            trace_request_ctx=progress,
            **options,
        ) as response:
            said = b""
            while len(said) < ANSWER_LIMIT_BYTES and (piece := await response.content.readany()):
                said += piece
            headers = tuple((name.lower(), value) for name, value in response.raw_headers)
            return Answer(response.status, headers, said[:ANSWER_LIMIT_BYTES])


class _Resolver(AbstractResolver):
    """The library's resolver, built on ours."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """See AbstractResolver; an OSError where ours has nothing to give."""
        try:
            found = await self._resolve(host, port)
        except DialError as error:
            raise OSError(str(error)) from None
        return [_as_the_library_wants(host, port, address) for address in found if family in (0, address[0])]

    async def close(self) -> None:
        """See AbstractResolver."""


def _as_the_library_names(proxy: Proxy) -> dict[str, Any]:
    login = {} if proxy.authorization is None else {"proxy-authorization": proxy.authorization}
    return {"proxy": URL.build(scheme="http", host=proxy.host, port=proxy.port), "proxy_headers": login}


def _as_the_library_wants(host: str, port: int, address: Any) -> ResolveResult:
    family, _, protocol, _, name = address
    return ResolveResult(
        hostname=host, host=str(name[0]), port=port, family=family, proto=protocol, flags=socket.AI_NUMERICHOST
    )
