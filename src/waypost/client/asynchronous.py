"""The client for programs on asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import aiohttp

from waypost.client import calls
from waypost.client.calls import ClientRequest, Json
from waypost.client.errors import ClientError, ConnectionLost
from waypost.client.trust import trust

_UPLOAD = aiohttp.ClientTimeout(total=None, sock_connect=30.0)
"""A list takes as long as it is."""


class AsyncClient:
    """A client of one app's Waypost, over kept connections: ``async with AsyncClient(url, key) as waypost``.

    Calls raise ApiError or ConnectionLost and return the answer as plain data. ValueError, at once, for a URL or a key
    that cannot be one.

    A call that may be carried out twice is repeated for up to *retry_s* seconds while nobody answers or the answer says
    when to come back: reads, devices, and submissions, which get an ``idempotency_key`` where they have
    none. 0 repeats nothing.

    Over https the authorities of *ca_file* alone are trusted, or the system's; *certificate_file*, with its key, is
    shown to a server that asks for one (PEM). An OSError where they cannot be used.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None,
        *,
        timeout_s: float = 30.0,
        retry_s: float = calls.RETRY_S,
        connections: int = 100,
        ca_file: Path | None = None,
        certificate_file: Path | None = None,
    ) -> None:
        parts = calls.address(url)
        calls.check_key(api_key)
        self._url = url.rstrip("/")
        self._netloc = parts.netloc
        self._api_key = api_key
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._retry_s = retry_s
        self._connections = connections
        self._tls = trust(ca_file, certificate_file) if parts.scheme == "https" else True
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, ssl=self._tls),
            timeout=self._timeout,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, notification: Json) -> Json:
        """Submit one notification; what it may hold is in the reference under ``POST /v1/notifications``."""
        return await self._answer(calls.send(notification))

    async def send_batch(self, notifications: Sequence[Json]) -> Json:
        """Submit up to 1,000; each is answered by itself, in order."""
        return await self._answer(calls.send_batch(notifications))

    async def show(self, notification_id: str) -> Json:
        """Get one notification with a receipt for each device."""
        return await self._answer(calls.show(notification_id))

    async def history(self, **query: str | int | None) -> Json:
        """List a page of notifications, newest first (user_id, status, limit, cursor)."""
        return await self._answer(calls.history(**query))

    async def cancel(self, notification_id: str) -> Json:
        """Stop what has not been handed over; the answer says what that achieved."""
        return await self._answer(calls.cancel(notification_id))

    async def replay(self, notification_id: str, ttl_s: int | None = None) -> Json:
        """Start a new round for what failed of one notification."""
        return await self._answer(calls.replay(notification_id, ttl_s))

    async def explain(self, notification: Json) -> Json:
        """Explain what would happen to a notification; nothing is sent."""
        return await self._answer(calls.explain(notification))

    async def forget(self, notification: Json) -> Json:
        """Forget a submission's dedup keys before its window ends; give it as it was made."""
        return await self._answer(calls.forget(notification))

    async def send_bulk(self, job: Json, idempotency_key: str | None = None) -> Json:
        """Tell many recipients; what a job may hold is in the reference under ``POST /v1/bulk``."""
        return await self._answer(calls.send_bulk(job, idempotency_key))

    async def upload_recipients(
        self, job_id: str, recipients: bytes | BinaryIO, media: str = "application/x-ndjson"
    ) -> Json:
        """Give a job its list, which starts it: NDJSON or CSV (``text/csv``), a file as it is read."""
        return await self._answer(calls.upload_recipients(job_id, recipients, media))

    async def bulk(self, job_id: str) -> Json:
        """Get a job and its progress."""
        return await self._answer(calls.bulk(job_id))

    async def bulk_jobs(self, **query: str | int | None) -> Json:
        """List a page of jobs, newest first (limit, cursor)."""
        return await self._answer(calls.bulk_jobs(**query))

    async def bulk_recipient(self, job_id: str, user_id: str) -> Json:
        """Get the status of one recipient of a job."""
        return await self._answer(calls.bulk_recipient(job_id, user_id))

    async def order_bulk(self, job_id: str, order: str) -> Json:
        """Order a job to ``pause``, ``resume`` or ``cancel``."""
        return await self._answer(calls.order_bulk(job_id, order))

    async def opt_out(self, user_id: str) -> Json:
        """Opt a user out of bulk sends."""
        return await self._answer(calls.opt_out(user_id))

    async def opt_in(self, user_id: str) -> Json:
        """End a user's bulk opt-out."""
        return await self._answer(calls.opt_in(user_id))

    async def erase_user(self, user_id: str) -> Json:
        """Forget a user: devices, what was said to them, and who they were in what stays."""
        return await self._answer(calls.erase_user(user_id))

    async def dead(self, **query: str | int | None) -> Json:
        """List a page of dead letters, newest first (code, user_id, since, limit, cursor)."""
        return await self._answer(calls.dead(**query))

    async def replay_dead(
        self,
        ids: Sequence[str] | None = None,
        filter: Json | None = None,
        cursor: str | None = None,
        ttl_s: int | None = None,
    ) -> Json:
        """Replay dead letters: those of the notifications *ids*, or one page of what *filter* finds."""
        return await self._answer(calls.replay_dead(ids, filter, cursor, ttl_s))

    async def audit(self, **query: str | int | None) -> Json:
        """List a page of who ordered what, newest first (act, by, limit, cursor)."""
        return await self._answer(calls.audit(**query))

    async def outbox(self, **query: str | int | None) -> Json:
        """List a page of the outbox, newest first, with how many entries have each status (status, limit, cursor)."""
        return await self._answer(calls.outbox(**query))

    async def devices(self, user_id: str, *, inactive: bool = False) -> Json:
        """List a user's devices."""
        return await self._answer(calls.devices(user_id, inactive=inactive))

    async def add_device(self, user_id: str, device_id: str, device: Json) -> Json:
        """Register or refresh a device; an app does this at each launch."""
        return await self._answer(calls.add_device(user_id, device_id, device))

    async def remove_device(self, user_id: str, device_id: str) -> Json:
        """Send nothing more to a device."""
        return await self._answer(calls.remove_device(user_id, device_id))

    async def ready(self) -> Json:
        """Check that Waypost can take requests now; ApiError (503) says why not."""
        return await self._answer(calls.ready())

    async def each(self, page: Callable[..., Awaitable[Json]], **query: str | int | None) -> AsyncIterator[Json]:
        """Yield everything on all pages, one after the other: ``async for one in client.each(client.history)``."""
        while True:
            answer = await page(**query)
            for item in calls.items_of(answer):
                yield item
            if not answer.get("next"):
                return
            query["cursor"] = answer["next"]

    async def _answer(self, call: ClientRequest) -> Json:
        ends_s = time.monotonic() + self._retry_s
        times = 0
        while True:
            try:
                return await self._answer_once(call)
            except ClientError as failed:
                times += 1
                pause_s = calls.pause_s(call, failed, times, ends_s - time.monotonic())
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)

    async def _answer_once(self, call: ClientRequest) -> Json:
        if self._session is None:
            raise RuntimeError("use it in an async with block")
        headers = calls.headers(self._api_key, call)
        try:
            async with self._session.request(
                call.method,
                self._url + call.path,
                data=call.body,
                headers=headers,
                allow_redirects=False,
                timeout=self._timeout if isinstance(call.body, bytes | None) else _UPLOAD,
            ) as response:
                status, body = response.status, await response.read()
        except (TimeoutError, aiohttp.ClientError) as lost:
            raise ConnectionLost(f"no answer from {self._netloc}: {type(lost).__name__}") from lost
        return calls.read(status, body)
