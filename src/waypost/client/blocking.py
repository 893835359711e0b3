"""The client for programs that wait for each answer."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from waypost.client import calls
from waypost.client.calls import ClientRequest, Json
from waypost.client.errors import ClientError, ConnectionLost
from waypost.client.trust import trust


class Client:
    """A client of one app's Waypost. Safe to share between threads: every call has a connection of its own.

    A kept connection that the server closed meanwhile would leave open whether a submission was carried out; programs
    that send much use AsyncClient. Calls raise ApiError or ConnectionLost and return the answer as plain data; a URL or
    a key that cannot be one is a ValueError at once.

    A call that may be carried out twice is repeated for up to *retry_s* seconds while nobody answers or the answer says
    when to come back: reads, devices, and submissions, which get an ``idempotency_key`` where they have none. 0 repeats
    nothing.

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
        parts = calls.address(url)
        calls.check_key(api_key)
        self._parts = parts
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._tls = trust(ca_file, certificate_file) if parts.scheme == "https" else None

    def send(self, notification: Json) -> Json:
        """Submit one notification; what it may hold is in the reference under ``POST /v1/notifications``."""
        return self._answer(calls.send(notification))

    def send_batch(self, notifications: Sequence[Json]) -> Json:
        """Submit up to 1,000; each is answered by itself, in order."""
        return self._answer(calls.send_batch(notifications))

    def show(self, notification_id: str) -> Json:
        """Get one notification with a receipt for each device."""
        return self._answer(calls.show(notification_id))

    def history(self, **query: str | int | None) -> Json:
        """List a page of notifications, newest first (user_id, status, limit, cursor)."""
        return self._answer(calls.history(**query))

    def cancel(self, notification_id: str) -> Json:
        """Stop what has not been handed over; the answer says what that achieved."""
        return self._answer(calls.cancel(notification_id))

    def replay(self, notification_id: str, ttl_s: int | None = None) -> Json:
        """Start a new round for what failed of one notification."""
        return self._answer(calls.replay(notification_id, ttl_s))

    def explain(self, notification: Json) -> Json:
        """Explain what would happen to a notification; nothing is sent."""
        return self._answer(calls.explain(notification))

    def forget(self, notification: Json) -> Json:
        """Forget a submission's dedup keys before its window ends; give it as it was made."""
        return self._answer(calls.forget(notification))

    def send_bulk(self, job: Json, idempotency_key: str | None = None) -> Json:
        """Tell many recipients; what a job may hold is in the reference under ``POST /v1/bulk``."""
        return self._answer(calls.send_bulk(job, idempotency_key))

    def upload_recipients(self, job_id: str, recipients: bytes | BinaryIO, media: str = "application/x-ndjson") -> Json:
        """Give a job its list, which starts it: NDJSON or CSV (``text/csv``), a file as it is read."""
        return self._answer(calls.upload_recipients(job_id, recipients, media))

    def bulk(self, job_id: str) -> Json:
        """Get a job and its progress."""
        return self._answer(calls.bulk(job_id))

    def bulk_jobs(self, **query: str | int | None) -> Json:
        """List a page of jobs, newest first (limit, cursor)."""
        return self._answer(calls.bulk_jobs(**query))

    def bulk_recipient(self, job_id: str, user_id: str) -> Json:
        """Get the status of one recipient of a job."""
        return self._answer(calls.bulk_recipient(job_id, user_id))

    def order_bulk(self, job_id: str, order: str) -> Json:
        """Order a job to ``pause``, ``resume`` or ``cancel``."""
        return self._answer(calls.order_bulk(job_id, order))

    def opt_out(self, user_id: str) -> Json:
        """Opt a user out of bulk sends."""
        return self._answer(calls.opt_out(user_id))

    def opt_in(self, user_id: str) -> Json:
        """End a user's bulk opt-out."""
        return self._answer(calls.opt_in(user_id))

    def erase_user(self, user_id: str) -> Json:
        """Forget a user: devices, what was said to them, and who they were in what stays."""
        return self._answer(calls.erase_user(user_id))

    def dead(self, **query: str | int | None) -> Json:
        """List a page of dead letters, newest first (code, user_id, since, limit, cursor)."""
        return self._answer(calls.dead(**query))

    def replay_dead(
        self,
        ids: Sequence[str] | None = None,
        filter: Json | None = None,
        cursor: str | None = None,
        ttl_s: int | None = None,
    ) -> Json:
        """Replay dead letters: those of the notifications *ids*, or one page of what *filter* finds."""
        return self._answer(calls.replay_dead(ids, filter, cursor, ttl_s))

    def audit(self, **query: str | int | None) -> Json:
        """List a page of who ordered what, newest first (act, by, limit, cursor)."""
        return self._answer(calls.audit(**query))

    def outbox(self, **query: str | int | None) -> Json:
        """List a page of the outbox, newest first, with how many entries have each status (status, limit, cursor)."""
        return self._answer(calls.outbox(**query))

    def devices(self, user_id: str, *, inactive: bool = False) -> Json:
        """List a user's devices."""
        return self._answer(calls.devices(user_id, inactive=inactive))

    def add_device(self, user_id: str, device_id: str, device: Json) -> Json:
        """Register or refresh a device; an app does this at each launch."""
        return self._answer(calls.add_device(user_id, device_id, device))

    def remove_device(self, user_id: str, device_id: str) -> Json:
        """Send nothing more to a device."""
        return self._answer(calls.remove_device(user_id, device_id))

    def ready(self) -> Json:
        """Check that Waypost can take requests now; ApiError (503) says why not."""
        return self._answer(calls.ready())

    def each(self, page: Callable[..., Json], **query: str | int | None) -> Iterator[Json]:
        """Yield everything on all pages, one after the other: ``client.each(client.history, user_id="ann")``."""
        while True:
            answer = page(**query)
            yield from calls.items_of(answer)
            if not answer.get("next"):
                return
            query["cursor"] = answer["next"]

    def _answer(self, call: ClientRequest) -> Json:
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

    def _answer_once(self, call: ClientRequest) -> Json:
        connection = self._connection()
        path = self._parts.path.rstrip("/") + call.path
        try:
            connection.request(call.method, path, call.body, calls.headers(self._api_key, call))
            response = connection.getresponse()
            status, body = response.status, response.read()
        except (OSError, http.client.HTTPException) as lost:
            why = getattr(lost, "strerror", None) or type(lost).__name__
            raise ConnectionLost(f"no answer from {self._parts.netloc}: {why}") from lost
        finally:
            connection.close()
        return calls.read(status, body)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=self._tls)
