"""The client for programs that wait for each answer."""

from __future__ import annotations

import http.client
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from . import calls
from .calls import ClientRequest
from .errors import ClientError, ConnectionLost
from .kept import Kept
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


class Client:
    """A client of one app's Waypost. Safe to share between threads, each of which waits on a connection of its own.

    Connections are kept for the next call until ``close``, or the end of a ``with`` block. Calls raise ApiError or
    ConnectionLost and return the answer as plain data; a URL or a key that cannot be one is a ValueError at once. No
    wait for the network is longer than *timeout_s*.

    A call that may be carried out twice is repeated for up to *retry_s* seconds while nobody answers, Waypost is busy
    or the answer says when to come back: reads, devices, and submissions, which get an ``idempotency_key`` where they
    have none. 0 repeats nothing. What must not be repeated takes a new connection, so that none which the server closed
    meanwhile leaves open whether it was carried out.

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
        ca_file: Path | None = None,
        certificate_file: Path | None = None,
    ) -> None:
        self._place = calls.address(url)
        calls.check_key(api_key)
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._tls = trust(ca_file, certificate_file) if self._place.is_tls else None
        self._kept = Kept()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that were kept; a later call opens a new one."""
        self._kept.close()

    def send(self, notification: Submission) -> Submitted:
        """Submit one notification; what it may hold is in the reference under ``POST /v1/notifications``."""
        answer: Submitted = self._answer(calls.send(notification))
        return answer

    def send_batch(self, notifications: Sequence[Submission]) -> BatchAnswer:
        """Submit up to 1,000; each is answered by itself, in order."""
        answer: BatchAnswer = self._answer(calls.send_batch(notifications))
        return answer

    def show(self, notification_id: str) -> NotificationView:
        """Get one notification with a receipt for each device."""
        answer: NotificationView = self._answer(calls.show(notification_id))
        return answer

    def wait(self, notification_id: str, timeout_s: float = 60.0) -> NotificationView:
        """Get one notification once it is final, or as it stands after *timeout_s* (``finished_at`` is None then)."""
        ends_s = time.monotonic() + timeout_s
        look_s = calls.FIRST_LOOK_S
        while True:
            detail = self.show(notification_id)
            left_s = ends_s - time.monotonic()
            if detail["notification"]["finished_at"] is not None or left_s <= 0:
                return detail
            time.sleep(min(look_s, left_s))
            look_s = min(calls.LONGEST_LOOK_S, look_s * 1.5)

    def history(self, **query: str | int | None) -> NotificationPage:
        """List a page of notifications, newest first (user_id, status, limit, cursor)."""
        answer: NotificationPage = self._answer(calls.history(**query))
        return answer

    def cancel(self, notification_id: str) -> Cancellation:
        """Stop what has not been handed over; the answer says what that achieved."""
        answer: Cancellation = self._answer(calls.cancel(notification_id))
        return answer

    def replay(self, notification_id: str, ttl_s: int | None = None) -> Replayed:
        """Start a new round for what failed of one notification."""
        answer: Replayed = self._answer(calls.replay(notification_id, ttl_s))
        return answer

    def explain(self, notification: Submission) -> Json:
        """Explain what would happen to a notification; nothing is sent."""
        answer: Json = self._answer(calls.explain(notification))
        return answer

    def forget(self, notification: Submission) -> Json:
        """Forget a submission's dedup keys before its window ends; give it as it was made."""
        answer: Json = self._answer(calls.forget(notification))
        return answer

    def send_bulk(self, job: Json, idempotency_key: str | None = None) -> Json:
        """Tell many recipients; what a job may hold is in the reference under ``POST /v1/bulk``."""
        answer: Json = self._answer(calls.send_bulk(job, idempotency_key))
        return answer

    def upload_recipients(self, job_id: str, recipients: bytes | BinaryIO, media: str = "application/x-ndjson") -> Json:
        """Give a job its list, which starts it: NDJSON or CSV (``text/csv``), a file as it is read."""
        answer: Json = self._answer(calls.upload_recipients(job_id, recipients, media))
        return answer

    def bulk(self, job_id: str) -> Json:
        """Get a job and its progress."""
        answer: Json = self._answer(calls.bulk(job_id))
        return answer

    def bulk_jobs(self, **query: str | int | None) -> Json:
        """List a page of jobs, newest first (limit, cursor)."""
        answer: Json = self._answer(calls.bulk_jobs(**query))
        return answer

    def bulk_recipient(self, job_id: str, user_id: str) -> Json:
        """Get the status of one recipient of a job."""
        answer: Json = self._answer(calls.bulk_recipient(job_id, user_id))
        return answer

    def order_bulk(self, job_id: str, order: str) -> Json:
        """Order a job to ``pause``, ``resume`` or ``cancel``."""
        answer: Json = self._answer(calls.order_bulk(job_id, order))
        return answer

    def put_campaign(self, name: str, campaign: Json) -> Json:
        """Draft a campaign, or change it; what it may hold is in the reference."""
        answer: Json = self._answer(calls.put_campaign(name, campaign))
        return answer

    def upload_campaign(self, name: str, recipients: bytes | BinaryIO, media: str = "application/x-ndjson") -> Json:
        """Add to the list of a draft: NDJSON or CSV (``text/csv``), a file as it is read."""
        answer: Json = self._answer(calls.upload_campaign(name, recipients, media))
        return answer

    def campaign(self, name: str, question: str | None = None) -> Json:
        """Get a campaign, or its ``forecast`` or ``results``."""
        answer: Json = self._answer(calls.campaign(name, question))
        return answer

    def campaigns(self, **query: str | int | None) -> Json:
        """List a page of campaigns by name (limit, cursor)."""
        answer: Json = self._answer(calls.campaigns(**query))
        return answer

    def order_campaign(self, name: str, order: str, at: str | None = None) -> Json:
        """Order a campaign to ``approve``, ``schedule`` at a time, ``start``, ``pause``, ``resume`` or ``cancel``."""
        answer: Json = self._answer(calls.order_campaign(name, order, at))
        return answer

    def opt_out(self, user_id: str) -> Json:
        """Opt a user out of bulk sends."""
        answer: Json = self._answer(calls.opt_out(user_id))
        return answer

    def opt_in(self, user_id: str) -> Json:
        """End a user's bulk opt-out."""
        answer: Json = self._answer(calls.opt_in(user_id))
        return answer

    def import_users(self, users: bytes | BinaryIO, media: str = "application/x-ndjson") -> Json:
        """Change the profiles of many users, a line each: NDJSON or CSV (``text/csv``), a file as it is read."""
        answer: Json = self._answer(calls.import_users(users, media))
        return answer

    def segments(self, **query: str | int | None) -> Json:
        """List a page of segments by name (limit, cursor)."""
        answer: Json = self._answer(calls.segments(**query))
        return answer

    def segment(self, name: str) -> Json:
        """Get a segment: a filter of users by its name."""
        answer: Json = self._answer(calls.segment(name))
        return answer

    def put_segment(self, name: str, filter_: Json) -> Json:
        """Give a filter of users a name."""
        answer: Json = self._answer(calls.put_segment(name, filter_))
        return answer

    def remove_segment(self, name: str) -> None:
        """Forget a filter's name."""
        self._answer(calls.remove_segment(name))

    def preview_segment(self, filter_: Json) -> Json:
        """Count whom a filter chooses now, with ten of them."""
        answer: Json = self._answer(calls.preview_segment(filter_))
        return answer

    def erase_user(self, user_id: str) -> Json:
        """Forget a user: devices, what was said to them, and who they were in what stays."""
        answer: Json = self._answer(calls.erase_user(user_id))
        return answer

    def feed(self, user_id: str, **query: str | int | None) -> FeedView:
        """List a page of a user's feed, newest first (folder, type, tag, limit, cursor)."""
        answer: FeedView = self._answer(calls.feed(user_id, **query))
        return answer

    def mark_feed(
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
        answer: Json = self._answer(calls.mark_feed(user_id, mark, ids, until, device_id))
        return answer

    def follow(self, user_id: str, cursor: str | None = None) -> Iterator[Json]:
        """Yield what happens in a user's feed from now on, or after *cursor*, without end.

        Where the connection ends, or Waypost is away or busy for a while, it goes on from what was yielded last. Each
        is a dict with a ``type``: ``hello``, ``entry``, ``marked``, ``fetch`` (more was missed than is told: list the
        feed) or ``reconnect``. ClientError where it cannot begin, or the key does not hold any more.
        """
        was_there, times = False, 0
        while True:
            call = calls.live_ticket(user_id)
            try:
                call = calls.live(self._answer(call)["ticket"], cursor)
                for message in self._events(call):
                    was_there, times = True, 0
                    cursor = message.get("cursor", cursor)
                    yield message
                time.sleep(calls.LIVE_PAUSE_S)
            except ClientError as failed:
                times += 1
                pause_s = calls.pause_s(call, failed, times, math.inf) if was_there else None
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    def templates(self, **query: str | int | None) -> Json:
        """List a page of templates by name (limit, cursor)."""
        answer: Json = self._answer(calls.templates(**query))
        return answer

    def template(self, name: str, version: int | None = None) -> Json:
        """Read a version of a template; the published one where none is named, or else the draft."""
        answer: Json = self._answer(calls.template(name, version))
        return answer

    def put_template(self, name: str, content: Json) -> Json:
        """Write a template's draft."""
        answer: Json = self._answer(calls.put_template(name, content))
        return answer

    def publish_template(self, name: str, version: int | None = None) -> Json:
        """Have submissions say this version from now on, the draft where none is named."""
        answer: Json = self._answer(calls.publish_template(name, version))
        return answer

    def retire_template(self, name: str) -> Json:
        """Refuse submissions that name it; what was accepted is still sent."""
        answer: Json = self._answer(calls.retire_template(name))
        return answer

    def preview_template(self, name: str, **asked: Any) -> Json:
        """Show what each platform would be sent (version, variables, locale, time_zone); nothing is sent."""
        answer: Json = self._answer(calls.preview_template(name, **asked))
        return answer

    def dead(self, **query: str | int | None) -> DeadPage:
        """List a page of dead letters, newest first (code, user_id, since, limit, cursor)."""
        answer: DeadPage = self._answer(calls.dead(**query))
        return answer

    def replay_dead(
        self,
        ids: Sequence[str] | None = None,
        filter: Json | None = None,
        cursor: str | None = None,
        ttl_s: int | None = None,
    ) -> Json:
        """Replay dead letters: those of the notifications *ids*, or one page of what *filter* finds."""
        answer: Json = self._answer(calls.replay_dead(ids, filter, cursor, ttl_s))
        return answer

    def balance(self) -> Json:
        """Show whether what came in adds up with what became of it, by lane."""
        answer: Json = self._answer(calls.balance())
        return answer

    def audit(self, **query: str | int | None) -> Json:
        """List a page of who ordered what, newest first (act, by, limit, cursor)."""
        answer: Json = self._answer(calls.audit(**query))
        return answer

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: str | int | None) -> Json:
        """Ask for what this client has no call for, such as ``ask("GET", "/v1/schedules", limit=10)``."""
        answer: Json = self._answer(calls.ask(method, path, body, **query))
        return answer

    def alerts(self, **query: str | int | None) -> Json:
        """List a page of alerts, the newest notification first (resolved, limit, cursor)."""
        answer: Json = self._answer(calls.alerts(**query))
        return answer

    def analytics(self, question: str, **query: str | int | None) -> Json:
        """Tell what was counted: ``rates``, ``funnel`` or ``events`` (since, until, every, zone, by, campaign, …)."""
        answer: Json = self._answer(calls.analytics(question, **query))
        return answer

    def best_hour(self, user_id: str, **query: str | int | None) -> Json:
        """Name the hour of the day in which a user reads most of what is sent (segment)."""
        answer: Json = self._answer(calls.best_hour(user_id, **query))
        return answer

    def retry_alert(self, notification_id: str) -> Json:
        """Offer the notification of an alert to workers again, or begin a new round of it."""
        answer: Json = self._answer(calls.retry_alert(notification_id))
        return answer

    def resolve_alert(self, notification_id: str) -> Json:
        """Close an alert; a notification that is not final by now has failed."""
        answer: Json = self._answer(calls.resolve_alert(notification_id))
        return answer

    def webhook_events(self, **query: str | int | None) -> Json:
        """List a page of what a URL was told, newest first (endpoint, status, since, until, limit, cursor)."""
        answer: Json = self._answer(calls.webhook_events(**query))
        return answer

    def replay_webhooks(self, ids: Sequence[str] | None = None, **order: str | bool | None) -> Json:
        """Tell the events *ids* again, or one page of those of a time (since, until, endpoint, sent, cursor)."""
        answer: Json = self._answer(calls.replay_webhooks(ids, **order))
        return answer

    def webhook_sources(self) -> Json:
        """List the addresses that webhooks come from."""
        answer: Json = self._answer(calls.webhook_sources())
        return answer

    def outbox(self, **query: str | int | None) -> Json:
        """List a page of the outbox, newest first, with how many entries have each status (status, limit, cursor)."""
        answer: Json = self._answer(calls.outbox(**query))
        return answer

    def devices(self, user_id: str, *, inactive: bool = False) -> DeviceList:
        """List a user's devices."""
        answer: DeviceList = self._answer(calls.devices(user_id, inactive=inactive))
        return answer

    def add_device(self, user_id: str, device_id: str, device: SubmittedDevice) -> RegisteredDevice:
        """Register or refresh a device; an app does this at each launch."""
        answer: RegisteredDevice = self._answer(calls.add_device(user_id, device_id, device))
        return answer

    def remove_device(self, user_id: str, device_id: str) -> Json:
        """Send nothing more to a device."""
        answer: Json = self._answer(calls.remove_device(user_id, device_id))
        return answer

    def ready(self) -> Json:
        """Check that Waypost can take requests now; ApiError (503) says why not."""
        answer: Json = self._answer(calls.ready())
        return answer

    def each(self, page: Callable[..., Any], **query: str | int | None) -> Iterator[Any]:
        """Yield everything on all pages, one after the other: ``client.each(client.history, user_id="ann")``."""
        while True:
            answer = page(**query)
            yield from calls.items_of(answer)
            if not answer.get("next"):
                return
            query["cursor"] = answer["next"]

    def _events(self, call: ClientRequest) -> Iterator[Json]:
        """Yield the events of a stream until its connection ends; ConnectionLost where it breaks off."""
        connection = self._connection()
        connection.timeout = max(self._timeout_s, calls.LIVE_TIMEOUT_S)
        try:
            headers = {**calls.headers(None, call), "Accept": "text/event-stream"}
            connection.request(call.method, self._place.path + call.path, call.body, headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                calls.read(response.status, response.read(), response.getheader("Retry-After"))
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        except (OSError, http.client.HTTPException) as lost:
            raise self._lost(lost) from lost
        finally:
            connection.close()

    def _lost(self, lost: Exception) -> ConnectionLost:
        why = getattr(lost, "strerror", None) or type(lost).__name__
        return ConnectionLost(f"no answer from {self._place.name}: {why}")

    def _answer(self, call: ClientRequest) -> Any:
        ends_s = time.monotonic() + self._retry_s
        times = 0
        while True:
            try:
                return self._answer_once(call)
            except ClientError as failed:
                times += 1
                pause_s = calls.pause_s(call, failed, times, ends_s - time.monotonic())
                if pause_s is None:
                    raise
            time.sleep(pause_s)

    def _answer_once(self, call: ClientRequest) -> Any:
        headers = calls.headers(self._api_key, call)
        kept = self._kept.take() if call.may_share else None
        try:
            response, body = self._ask(kept, call, headers)
        except (OSError, http.client.HTTPException) as lost:
            raise self._lost(lost) from lost
        return calls.read(response.status, body, response.getheader("Retry-After"))

    def _ask(
        self, kept: http.client.HTTPConnection | None, call: ClientRequest, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if kept is not None:
            try:
                return self._ask_on(kept, call, headers)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                pass  # closed meanwhile: a new connection is no further attempt
        return self._ask_on(self._connection(), call, headers)

    def _ask_on(
        self, connection: http.client.HTTPConnection, call: ClientRequest, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            connection.request(call.method, self._place.path + call.path, call.body, headers)
            response = connection.getresponse()
            body = response.read()
        except BaseException:
            connection.close()
            raise
        self._kept.put(connection)
        return response, body

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._place.host, self._place.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=self._tls)
