"""The client for programs on asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from . import calls
from .calls import ClientRequest
from .errors import ClientError, ConnectionLost
from .http1 import Answer, BrokenAnswer, Connection
from .trust import trust
from .types import (
    BatchAnswer,
    Cancellation,
    DeadPage,
    DeviceList,
    FeedView,
    Json,
    NotificationPage,
    NotificationView,
    RegisteredDevice,
    Replayed,
    Submission,
    Submitted,
    SubmittedDevice,
)

_Failed = (OSError, EOFError, BrokenAnswer)
"""How an exchange ends without an answer; a TimeoutError is an OSError."""


class AsyncClient:
    """A client of one app's Waypost, over kept connections: ``async with AsyncClient(url, key) as waypost``.

    Calls raise ApiError or ConnectionLost and return the answer as plain data. ValueError, at once, for a URL or a key
    that cannot be one.

    A call that may be carried out twice is repeated for up to *retry_s* seconds while nobody answers, Waypost is busy
    or the answer says when to come back: reads, devices, and submissions, which get an ``idempotency_key`` where they
    have none. 0 repeats nothing. What must not be repeated takes a new connection, so that none which the server closed
    meanwhile leaves open whether it was carried out.

    Each attempt may take *timeout_s*, but for a list of recipients, which takes as long as it is. More calls than
    *connections* at a time wait for each other.

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
        self._place = calls.address(url)
        calls.check_key(api_key)
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._turns = asyncio.Semaphore(connections)
        self._tls = trust(ca_file, certificate_file) if self._place.is_tls else None
        self._idle: list[Connection] = []
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        while self._idle:
            await self._idle.pop().close()

    async def send(self, notification: Submission) -> Submitted:
        """Submit one notification; what it may hold is in the reference under ``POST /v1/notifications``."""
        answer: Submitted = await self._answer(calls.send(notification))
        return answer

    async def send_batch(self, notifications: Sequence[Submission]) -> BatchAnswer:
        """Submit up to 1,000; each is answered by itself, in order."""
        answer: BatchAnswer = await self._answer(calls.send_batch(notifications))
        return answer

    async def show(self, notification_id: str) -> NotificationView:
        """Get one notification with a receipt for each device."""
        answer: NotificationView = await self._answer(calls.show(notification_id))
        return answer

    async def wait(self, notification_id: str, timeout_s: float = 60.0) -> NotificationView:
        """Get one notification once it is final, or as it stands after *timeout_s* (``finished_at`` is None then)."""
        ends_s = time.monotonic() + timeout_s
        look_s = calls.FIRST_LOOK_S
        while True:
            detail = await self.show(notification_id)
            left_s = ends_s - time.monotonic()
            if detail["notification"]["finished_at"] is not None or left_s <= 0:
                return detail
            await asyncio.sleep(min(look_s, left_s))
            look_s = min(calls.LONGEST_LOOK_S, look_s * 1.5)

    async def history(self, **query: str | int | None) -> NotificationPage:
        """List a page of notifications, newest first (user_id, status, limit, cursor)."""
        answer: NotificationPage = await self._answer(calls.history(**query))
        return answer

    async def cancel(self, notification_id: str) -> Cancellation:
        """Stop what has not been handed over; the answer says what that achieved."""
        answer: Cancellation = await self._answer(calls.cancel(notification_id))
        return answer

    async def replay(self, notification_id: str, ttl_s: int | None = None) -> Replayed:
        """Start a new round for what failed of one notification."""
        answer: Replayed = await self._answer(calls.replay(notification_id, ttl_s))
        return answer

    async def explain(self, notification: Submission) -> Json:
        """Explain what would happen to a notification; nothing is sent."""
        answer: Json = await self._answer(calls.explain(notification))
        return answer

    async def forget(self, notification: Submission) -> Json:
        """Forget a submission's dedup keys before its window ends; give it as it was made."""
        answer: Json = await self._answer(calls.forget(notification))
        return answer

    async def send_bulk(self, job: Json, idempotency_key: str | None = None) -> Json:
        """Tell many recipients; what a job may hold is in the reference under ``POST /v1/bulk``."""
        answer: Json = await self._answer(calls.send_bulk(job, idempotency_key))
        return answer

    async def upload_recipients(
        self, job_id: str, recipients: bytes | BinaryIO, media: str = "application/x-ndjson"
    ) -> Json:
        """Give a job its list, which starts it: NDJSON or CSV (``text/csv``), a file as it is read."""
        answer: Json = await self._answer(calls.upload_recipients(job_id, recipients, media))
        return answer

    async def bulk(self, job_id: str) -> Json:
        """Get a job and its progress."""
        answer: Json = await self._answer(calls.bulk(job_id))
        return answer

    async def bulk_jobs(self, **query: str | int | None) -> Json:
        """List a page of jobs, newest first (limit, cursor)."""
        answer: Json = await self._answer(calls.bulk_jobs(**query))
        return answer

    async def bulk_recipient(self, job_id: str, user_id: str) -> Json:
        """Get the status of one recipient of a job."""
        answer: Json = await self._answer(calls.bulk_recipient(job_id, user_id))
        return answer

    async def order_bulk(self, job_id: str, order: str) -> Json:
        """Order a job to ``pause``, ``resume`` or ``cancel``."""
        answer: Json = await self._answer(calls.order_bulk(job_id, order))
        return answer

    async def put_campaign(self, name: str, campaign: Json) -> Json:
        """Draft a campaign, or change it; what it may hold is in the reference."""
        answer: Json = await self._answer(calls.put_campaign(name, campaign))
        return answer

    async def upload_campaign(
        self, name: str, recipients: bytes | BinaryIO, media: str = "application/x-ndjson"
    ) -> Json:
        """Add to the list of a draft: NDJSON or CSV (``text/csv``), a file as it is read."""
        answer: Json = await self._answer(calls.upload_campaign(name, recipients, media))
        return answer

    async def campaign(self, name: str, question: str | None = None) -> Json:
        """Get a campaign, or its ``forecast`` or ``results``."""
        answer: Json = await self._answer(calls.campaign(name, question))
        return answer

    async def campaigns(self, **query: str | int | None) -> Json:
        """List a page of campaigns by name (limit, cursor)."""
        answer: Json = await self._answer(calls.campaigns(**query))
        return answer

    async def order_campaign(self, name: str, order: str, at: str | None = None) -> Json:
        """Order a campaign to ``approve``, ``schedule`` at a time, ``start``, ``pause``, ``resume`` or ``cancel``."""
        answer: Json = await self._answer(calls.order_campaign(name, order, at))
        return answer

    async def opt_out(self, user_id: str) -> Json:
        """Opt a user out of bulk sends."""
        answer: Json = await self._answer(calls.opt_out(user_id))
        return answer

    async def opt_in(self, user_id: str) -> Json:
        """End a user's bulk opt-out."""
        answer: Json = await self._answer(calls.opt_in(user_id))
        return answer

    async def import_users(self, users: bytes | BinaryIO, media: str = "application/x-ndjson") -> Json:
        """Change the profiles of many users, a line each: NDJSON or CSV (``text/csv``), a file as it is read."""
        answer: Json = await self._answer(calls.import_users(users, media))
        return answer

    async def segments(self, **query: str | int | None) -> Json:
        """List a page of segments by name (limit, cursor)."""
        answer: Json = await self._answer(calls.segments(**query))
        return answer

    async def segment(self, name: str) -> Json:
        """Get a segment: a filter of users by its name."""
        answer: Json = await self._answer(calls.segment(name))
        return answer

    async def put_segment(self, name: str, filter_: Json) -> Json:
        """Give a filter of users a name."""
        answer: Json = await self._answer(calls.put_segment(name, filter_))
        return answer

    async def remove_segment(self, name: str) -> None:
        """Forget a filter's name."""
        await self._answer(calls.remove_segment(name))

    async def preview_segment(self, filter_: Json) -> Json:
        """Count whom a filter chooses now, with ten of them."""
        answer: Json = await self._answer(calls.preview_segment(filter_))
        return answer

    async def erase_user(self, user_id: str) -> Json:
        """Forget a user: devices, what was said to them, and who they were in what stays."""
        answer: Json = await self._answer(calls.erase_user(user_id))
        return answer

    async def feed(self, user_id: str, **query: str | int | None) -> FeedView:
        """List a page of a user's feed, newest first (folder, type, tag, limit, cursor)."""
        answer: FeedView = await self._answer(calls.feed(user_id, **query))
        return answer

    async def mark_feed(
        self,
        user_id: str,
        mark: str,
        ids: Sequence[str] = (),
        until: str | None = None,
        *,
        device_id: str | None = None,
    ) -> Json:
        """Mark entries of a user's feed as ``seen``, ``read``, ``unread``, ``archived``, ``deleted``, or back.

        The device *device_id*, where it was done, is not told of it by a push.
        """
        answer: Json = await self._answer(calls.mark_feed(user_id, mark, ids, until, device_id))
        return answer

    async def templates(self, **query: str | int | None) -> Json:
        """List a page of templates by name (limit, cursor)."""
        answer: Json = await self._answer(calls.templates(**query))
        return answer

    async def template(self, name: str, version: int | None = None) -> Json:
        """Read a version of a template; the published one where none is named, or else the draft."""
        answer: Json = await self._answer(calls.template(name, version))
        return answer

    async def put_template(self, name: str, content: Json) -> Json:
        """Write a template's draft."""
        answer: Json = await self._answer(calls.put_template(name, content))
        return answer

    async def publish_template(self, name: str, version: int | None = None) -> Json:
        """Have submissions say this version from now on, the draft where none is named."""
        answer: Json = await self._answer(calls.publish_template(name, version))
        return answer

    async def retire_template(self, name: str) -> Json:
        """Refuse submissions that name it; what was accepted is still sent."""
        answer: Json = await self._answer(calls.retire_template(name))
        return answer

    async def preview_template(self, name: str, **asked: Any) -> Json:
        """Show what each platform would be sent (version, variables, locale, time_zone); nothing is sent."""
        answer: Json = await self._answer(calls.preview_template(name, **asked))
        return answer

    async def dead(self, **query: str | int | None) -> DeadPage:
        """List a page of dead letters, newest first (code, user_id, since, limit, cursor)."""
        answer: DeadPage = await self._answer(calls.dead(**query))
        return answer

    async def replay_dead(
        self,
        ids: Sequence[str] | None = None,
        filter: Json | None = None,
        cursor: str | None = None,
        ttl_s: int | None = None,
    ) -> Json:
        """Replay dead letters: those of the notifications *ids*, or one page of what *filter* finds."""
        answer: Json = await self._answer(calls.replay_dead(ids, filter, cursor, ttl_s))
        return answer

    async def balance(self) -> Json:
        """Show whether what came in adds up with what became of it, by lane."""
        answer: Json = await self._answer(calls.balance())
        return answer

    async def audit(self, **query: str | int | None) -> Json:
        """List a page of who ordered what, newest first (act, by, limit, cursor)."""
        answer: Json = await self._answer(calls.audit(**query))
        return answer

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: str | int | None
    ) -> Json:
        """Ask for what this client has no call for, such as ``ask("GET", "/v1/schedules", limit=10)``."""
        answer: Json = await self._answer(calls.ask(method, path, body, **query))
        return answer

    async def alerts(self, **query: str | int | None) -> Json:
        """List a page of alerts, the newest notification first (resolved, limit, cursor)."""
        answer: Json = await self._answer(calls.alerts(**query))
        return answer

    async def analytics(self, question: str, **query: str | int | None) -> Json:
        """Tell what was counted: ``rates``, ``funnel`` or ``events`` (since, until, every, zone, by, campaign, …)."""
        answer: Json = await self._answer(calls.analytics(question, **query))
        return answer

    async def best_hour(self, user_id: str, **query: str | int | None) -> Json:
        """Name the hour of the day in which a user reads most of what is sent (segment)."""
        answer: Json = await self._answer(calls.best_hour(user_id, **query))
        return answer

    async def retry_alert(self, notification_id: str) -> Json:
        """Offer the notification of an alert to workers again, or begin a new round of it."""
        answer: Json = await self._answer(calls.retry_alert(notification_id))
        return answer

    async def resolve_alert(self, notification_id: str) -> Json:
        """Close an alert; a notification that is not final by now has failed."""
        answer: Json = await self._answer(calls.resolve_alert(notification_id))
        return answer

    async def webhook_events(self, **query: str | int | None) -> Json:
        """List a page of what a URL was told, newest first (endpoint, status, since, until, limit, cursor)."""
        answer: Json = await self._answer(calls.webhook_events(**query))
        return answer

    async def replay_webhooks(self, ids: Sequence[str] | None = None, **order: str | bool | None) -> Json:
        """Tell the events *ids* again, or one page of those of a time (since, until, endpoint, sent, cursor)."""
        answer: Json = await self._answer(calls.replay_webhooks(ids, **order))
        return answer

    async def webhook_sources(self) -> Json:
        """List the addresses that webhooks come from."""
        answer: Json = await self._answer(calls.webhook_sources())
        return answer

    async def outbox(self, **query: str | int | None) -> Json:
        """List a page of the outbox, newest first, with how many entries have each status (status, limit, cursor)."""
        answer: Json = await self._answer(calls.outbox(**query))
        return answer

    async def devices(self, user_id: str, *, inactive: bool = False) -> DeviceList:
        """List a user's devices."""
        answer: DeviceList = await self._answer(calls.devices(user_id, inactive=inactive))
        return answer

    async def add_device(self, user_id: str, device_id: str, device: SubmittedDevice) -> RegisteredDevice:
        """Register or refresh a device; an app does this at each launch."""
        answer: RegisteredDevice = await self._answer(calls.add_device(user_id, device_id, device))
        return answer

    async def remove_device(self, user_id: str, device_id: str) -> Json:
        """Send nothing more to a device."""
        answer: Json = await self._answer(calls.remove_device(user_id, device_id))
        return answer

    async def ready(self) -> Json:
        """Check that Waypost can take requests now; ApiError (503) says why not."""
        answer: Json = await self._answer(calls.ready())
        return answer

    async def each(self, page: Callable[..., Awaitable[Any]], **query: str | int | None) -> AsyncIterator[Any]:
        """Yield everything on all pages, one after the other: ``async for one in client.each(client.history)``."""
        while True:
            answer = await page(**query)
            for item in calls.items_of(answer):
                yield item
            if not answer.get("next"):
                return
            query["cursor"] = answer["next"]

    async def _answer(self, call: ClientRequest) -> Any:
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

    async def _answer_once(self, call: ClientRequest) -> Any:
        if not self._is_open:
            raise RuntimeError("use it in an async with block")
        head = calls.head(self._place, self._api_key, call)
        async with self._turns:
            try:
                async with asyncio.timeout(self._timeout_s if isinstance(call.body, bytes | None) else None):
                    answer = await self._ask(call, head)
            except _Failed as lost:
                why = getattr(lost, "strerror", None) or type(lost).__name__
                raise ConnectionLost(f"no answer from {self._place.name}: {why}") from lost
        return calls.read(answer.status, answer.body, answer.headers.get("retry-after"))

    async def _ask(self, call: ClientRequest, head: bytes) -> Answer:
        kept = await self._take() if call.may_share else None
        if kept is not None:
            with contextlib.suppress(*_Failed):  # closed meanwhile: a new connection is no further attempt
                return await self._ask_on(kept, call, head)
        async with asyncio.timeout(self._timeout_s):
            fresh = await Connection.open(self._place.host, self._place.port, self._tls)
        return await self._ask_on(fresh, call, head)

    async def _ask_on(self, connection: Connection, call: ClientRequest, head: bytes) -> Answer:
        try:
            answer = await connection.ask(head, call.body)
        except BaseException:
            await connection.close()
            raise
        if connection.is_kept and self._is_open:
            self._idle.append(connection)
        else:
            await connection.close()
        return answer

    async def _take(self) -> Connection | None:
        """Take the connection used last that the server has not closed; None where there is none."""
        while self._idle:
            connection = self._idle.pop()
            if await connection.is_silent():
                return connection
            await connection.close()
        return None
