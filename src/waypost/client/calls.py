"""The API as data: each call says what to ask for; how it travels is the clients' business."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from .errors import ApiError, ClientError
from .types import Json, Submission, SubmittedDevice

RETRY_S = 10.0
"""For how long the clients repeat a call, unless told otherwise."""
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
FIRST_LOOK_S, LONGEST_LOOK_S = 0.05, 1.0
"""The first and the longest pause of ``wait``; the API has no call that waits."""
_BUSY = (429, 503)
LIVE_PAUSE_S = 1.0
"""Seconds until a live connection that ended is opened again."""
LIVE_TIMEOUT_S = 60.0
"""The least seconds without a byte after which a live connection is lost; the server pings each 25 by default."""


class Place(NamedTuple):
    """The place of a Waypost."""

    is_tls: bool
    host: str
    port: int
    name: str
    """Host and port as a request names them."""
    path: str
    """What stands before each path, such as ``/push`` behind a proxy."""


class ClientRequest(NamedTuple):
    """A request to Waypost."""

    method: str
    path: str
    body: bytes | BinaryIO | None = None
    """A file is read as it is sent."""
    media: str = "application/json"
    idempotency_key: str | None = None
    is_repeatable: bool = True
    """Carried out twice, it does what it does once."""

    @property
    def may_share(self) -> bool:
        """Whether it may go on a kept connection, and so once more where the server has closed that."""
        return self.is_repeatable or self.method == "GET"


def address(url: str) -> Place:
    """Read the URL of a Waypost; ValueError where it is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the URL of Waypost begins with http:// or https:// and names a host")
    path = parts.path.rstrip("/")
    if not _is_plain(path):
        raise ValueError("the path of the URL has characters that no URL has")
    host = parts.hostname if ":" in parts.hostname else parts.hostname.encode("idna").decode()
    name = f"[{host}]" if ":" in host else host
    port = parts.port  # a ValueError says itself that it is out of range
    is_tls = parts.scheme == "https"
    return Place(is_tls, host, port or (443 if is_tls else 80), name if port is None else f"{name}:{port}", path)


def check_key(api_key: str | None) -> None:
    """Raise ValueError, without quoting it, where a key cannot be one (such as with a line end from a file)."""
    if api_key is not None and not _is_plain(api_key):
        raise ValueError("the API key has characters that no key has, such as a line end")


def send(notification: Submission) -> ClientRequest:
    """Submit one notification; the fields are those of ``POST /v1/notifications`` in the reference."""
    return _post("/v1/notifications", _with_key(notification))


def send_batch(notifications: Sequence[Submission]) -> ClientRequest:
    """Submit up to 1,000; each is answered by itself, in order."""
    return _post("/v1/notifications/batch", {"notifications": list(map(_with_key, notifications))})


def show(notification_id: str) -> ClientRequest:
    """Get one notification with a receipt for each device."""
    return ClientRequest("GET", f"/v1/notifications/{_part(notification_id)}")


def history(**query: str | int | None) -> ClientRequest:
    """List a page of notifications, newest first (user_id, status, limit, cursor)."""
    return ClientRequest("GET", "/v1/notifications" + _query(query))


def cancel(notification_id: str) -> ClientRequest:
    """Stop what has not been handed over."""
    return ClientRequest("POST", f"/v1/notifications/{_part(notification_id)}/cancel")


def replay(notification_id: str, ttl_s: int | None = None) -> ClientRequest:
    """Start a new round for what failed of one notification."""
    return _post(f"/v1/notifications/{_part(notification_id)}/replay", _given(ttl=ttl_s), is_repeatable=False)


def explain(notification: Submission) -> ClientRequest:
    """Explain what would happen to a notification; nothing is sent."""
    return _post("/v1/explain", notification)


def forget(notification: Submission) -> ClientRequest:
    """Forget a submission's dedup keys."""
    return _post("/v1/dedup/forget", notification)


def send_bulk(job: Json, idempotency_key: str | None = None) -> ClientRequest:
    """Tell many recipients; the fields are those of ``POST /v1/bulk`` in the reference."""
    return ClientRequest("POST", "/v1/bulk", _encode(job), idempotency_key=idempotency_key or str(uuid.uuid4()))


def upload_recipients(job_id: str, recipients: bytes | BinaryIO, media: str) -> ClientRequest:
    """Give a job its list, which starts it: ``application/x-ndjson`` or ``text/csv``."""
    return ClientRequest("PUT", f"/v1/bulk/{_part(job_id)}/recipients", recipients, media, is_repeatable=False)


def bulk(job_id: str) -> ClientRequest:
    """Get a job and its progress."""
    return ClientRequest("GET", f"/v1/bulk/{_part(job_id)}")


def bulk_jobs(**query: str | int | None) -> ClientRequest:
    """List a page of jobs, newest first (limit, cursor)."""
    return ClientRequest("GET", "/v1/bulk" + _query(query))


def bulk_recipient(job_id: str, user_id: str) -> ClientRequest:
    """Get the status of one recipient of a job."""
    return ClientRequest("GET", f"/v1/bulk/{_part(job_id)}/recipients/{_part(user_id)}")


def order_bulk(job_id: str, order: str) -> ClientRequest:
    """Order a job to ``pause``, ``resume`` or ``cancel``."""
    return ClientRequest("POST", f"/v1/bulk/{_part(job_id)}/{_part(order)}")


def put_campaign(name: str, campaign: Json) -> ClientRequest:
    """Draft a campaign, or change it; the fields are those of ``PUT /v1/campaigns/{campaign}`` in the reference."""
    return ClientRequest("PUT", f"/v1/campaigns/{_part(name)}", _encode(campaign))


def upload_campaign(name: str, recipients: bytes | BinaryIO, media: str) -> ClientRequest:
    """Add to the list of a draft: ``application/x-ndjson`` or ``text/csv``."""
    return ClientRequest("PUT", f"/v1/campaigns/{_part(name)}/recipients", recipients, media, is_repeatable=False)


def campaign(name: str, question: str | None = None) -> ClientRequest:
    """Get a campaign, or its ``forecast`` or ``results``."""
    return ClientRequest("GET", f"/v1/campaigns/{_part(name)}" + (f"/{_part(question)}" if question else ""))


def campaigns(**query: str | int | None) -> ClientRequest:
    """List a page of campaigns by name (limit, cursor)."""
    return ClientRequest("GET", "/v1/campaigns" + _query(query))


def order_campaign(name: str, order: str, at: str | None = None) -> ClientRequest:
    """Order a campaign to ``approve``, ``schedule`` (with a time), ``start``, ``pause``, ``resume`` or ``cancel``."""
    body = b"" if at is None else _encode({"at": at})
    return ClientRequest("POST", f"/v1/campaigns/{_part(name)}/{_part(order)}", body)


def opt_out(user_id: str) -> ClientRequest:
    """Opt a user out of bulk sends."""
    return ClientRequest("PUT", f"/v1/users/{_part(user_id)}/bulk-opt-out", b"")


def opt_in(user_id: str) -> ClientRequest:
    """End a user's bulk opt-out."""
    return ClientRequest("DELETE", f"/v1/users/{_part(user_id)}/bulk-opt-out")


def import_users(users: bytes | BinaryIO, media: str) -> ClientRequest:
    """Change the profiles of many users, a line each: ``application/x-ndjson`` or ``text/csv``."""
    return ClientRequest("POST", "/v1/users", users, media, is_repeatable=False)


def segments(**query: str | int | None) -> ClientRequest:
    """List a page of segments by name (limit, cursor)."""
    return ClientRequest("GET", "/v1/segments" + _query(query))


def put_segment(name: str, filter_: Json) -> ClientRequest:
    """Give a filter of users a name."""
    return ClientRequest("PUT", f"/v1/segments/{_part(name)}", _encode({"filter": filter_}))


def remove_segment(name: str) -> ClientRequest:
    """Forget a filter's name."""
    return ClientRequest("DELETE", f"/v1/segments/{_part(name)}")


def segment(name: str) -> ClientRequest:
    """Get a segment."""
    return ClientRequest("GET", f"/v1/segments/{_part(name)}")


def preview_segment(filter_: Json) -> ClientRequest:
    """Count whom a filter chooses."""
    return _post("/v1/segments/preview", {"filter": filter_})


def erase_user(user_id: str) -> ClientRequest:
    """Forget a user."""
    return ClientRequest("DELETE", f"/v1/users/{_part(user_id)}")


def feed(user_id: str, **query: str | int | None) -> ClientRequest:
    """List a page of a user's feed, newest first (folder, type, tag, limit, cursor)."""
    return ClientRequest("GET", f"/v1/users/{_part(user_id)}/feed" + _query(query))


def mark_feed(user_id: str, mark: str, ids: Sequence[str], until: str | None, device_id: str | None) -> ClientRequest:
    """Mark entries of a user's feed; a repeat changes nothing."""
    said = _given(mark=mark, ids=list(ids) or None, until=until, device_id=device_id)
    return _post(f"/v1/users/{_part(user_id)}/feed/marks", said)


def live_ticket(user_id: str) -> ClientRequest:
    """Ask for a ticket to a user's live connection."""
    return _post(f"/v1/users/{_part(user_id)}/live-tickets", {})


def live(ticket: str, cursor: str | None) -> ClientRequest:
    """Follow a feed as an event stream, from after *cursor*."""
    return ClientRequest("GET", "/live" + _query({"ticket": ticket, "since": cursor}))


def templates(**query: str | int | None) -> ClientRequest:
    """List a page of templates by name (limit, cursor)."""
    return ClientRequest("GET", "/v1/templates" + _query(query))


def template(name: str, version: int | None) -> ClientRequest:
    """Read a version of a template."""
    return ClientRequest("GET", f"/v1/templates/{_part(name)}" + _query({"version": version}))


def put_template(name: str, content: Json) -> ClientRequest:
    """Write a template's draft."""
    return ClientRequest("PUT", f"/v1/templates/{_part(name)}", json.dumps(content).encode())


def publish_template(name: str, version: int | None) -> ClientRequest:
    """Publish a version of a template."""
    return _post(f"/v1/templates/{_part(name)}/publish", _given(version=version))


def retire_template(name: str) -> ClientRequest:
    """Retire a template."""
    return ClientRequest("DELETE", f"/v1/templates/{_part(name)}")


def preview_template(name: str, **asked: Any) -> ClientRequest:
    """Ask what each platform would be sent."""
    return _post(f"/v1/templates/{_part(name)}/preview", _given(**asked))


def dead(**query: str | int | None) -> ClientRequest:
    """List a page of dead letters, newest first (code, user_id, since, limit, cursor)."""
    return ClientRequest("GET", "/v1/dead" + _query(query))


def replay_dead(
    ids: Sequence[str] | None = None,
    filter: Json | None = None,
    cursor: str | None = None,
    ttl_s: int | None = None,
) -> ClientRequest:
    """Replay dead letters: those of the notifications *ids*, or one page of what *filter* finds."""
    ids = None if ids is None else list(ids)
    asked = _given(ids=ids, filter=filter, cursor=cursor, ttl=ttl_s)
    return _post("/v1/dead/replay", asked, is_repeatable=False)


def audit(**query: str | int | None) -> ClientRequest:
    """List a page of who ordered what, newest first (act, by, limit, cursor)."""
    return ClientRequest("GET", f"/v1/audit{_query(query)}")


def balance() -> ClientRequest:
    """Show whether what came in adds up with what became of it, by lane."""
    return ClientRequest("GET", "/v1/balance")


def ask(method: str, path: str, body: Mapping[str, Any] | None, **query: str | int | None) -> ClientRequest:
    """Ask for what there is no call for; only what reads, or puts the whole of something, is repeated."""
    said = None if body is None else _encode(body)
    return ClientRequest(method, path + _query(query), said, is_repeatable=method in _REPEATABLE)


_REPEATABLE = ("GET", "PUT", "DELETE")


def alerts(**query: str | int | None) -> ClientRequest:
    """List a page of alerts (resolved, limit, cursor)."""
    return ClientRequest("GET", "/v1/alerts" + _query(query))


def analytics(question: str, **query: str | int | None) -> ClientRequest:
    """Ask for rates, funnel or events (since, until, every, zone, by, campaign, …)."""
    return ClientRequest("GET", f"/v1/analytics/{question}" + _query(query))


def best_hour(user_id: str, **query: str | int | None) -> ClientRequest:
    """Ask in which hour of the day to send to a user (segment)."""
    return ClientRequest("GET", f"/v1/users/{_part(user_id)}/best-hour" + _query(query))


def retry_alert(notification_id: str) -> ClientRequest:
    """Offer the notification of an alert to workers again."""
    return ClientRequest("POST", f"/v1/alerts/{_part(notification_id)}/retry", is_repeatable=False)


def resolve_alert(notification_id: str) -> ClientRequest:
    """Close an alert; its notification has failed."""
    return ClientRequest("POST", f"/v1/alerts/{_part(notification_id)}/resolve", is_repeatable=False)


def webhook_events(**query: str | int | None) -> ClientRequest:
    """List a page of what a URL was told, newest first (endpoint, status, since, until, limit, cursor)."""
    return ClientRequest("GET", "/v1/webhooks/events" + _query(query))


def replay_webhooks(ids: Sequence[str] | None = None, **order: str | bool | None) -> ClientRequest:
    """Tell the events *ids* again, or one page of those of a time (since, until, endpoint, sent, cursor)."""
    asked = _given(ids=None if ids is None else list(ids), **order)
    return _post("/v1/webhooks/replay", asked, is_repeatable=False)


def webhook_sources() -> ClientRequest:
    """List the addresses that webhooks come from."""
    return ClientRequest("GET", "/v1/webhooks/sources")


def outbox(**query: str | int | None) -> ClientRequest:
    """List a page of the outbox, newest first, with how many entries have each status (status, limit, cursor)."""
    return ClientRequest("GET", "/v1/outbox" + _query(query))


def devices(user_id: str, *, inactive: bool = False) -> ClientRequest:
    """List a user's devices."""
    return ClientRequest("GET", f"/v1/devices/{_part(user_id)}" + _query({"inactive": "true" if inactive else None}))


def add_device(user_id: str, device_id: str, device: SubmittedDevice) -> ClientRequest:
    """Register or refresh a device; the fields are those of ``PUT /v1/devices/…`` in the reference."""
    return ClientRequest("PUT", f"/v1/devices/{_part(user_id)}/{_part(device_id)}", _encode(device))


def remove_device(user_id: str, device_id: str) -> ClientRequest:
    """Send nothing more to a device."""
    return ClientRequest("DELETE", f"/v1/devices/{_part(user_id)}/{_part(device_id)}")


def ready() -> ClientRequest:
    """Check that Waypost can take requests now."""
    return ClientRequest("GET", "/health/ready", is_repeatable=False)


def headers(api_key: str | None, call: ClientRequest) -> dict[str, str]:
    """Return the headers of every request."""
    common = {"Accept": "application/json", "User-Agent": "waypost-client"}
    if api_key is not None:
        common["Authorization"] = f"Bearer {api_key}"
    if call.body is not None:
        common["Content-Type"] = call.media
    if not _is_plain(call.media):
        raise ValueError("Content-Type takes visible ASCII characters alone")
    if call.idempotency_key is not None:
        if not _is_plain(call.idempotency_key):
            raise ValueError("Idempotency-Key takes visible ASCII characters alone")
        common["Idempotency-Key"] = call.idempotency_key
    return common


def head(place: Place, api_key: str | None, call: ClientRequest) -> bytes:
    """Write the head of a request, for who has no library that does."""
    lines = [f"{call.method} {place.path}{call.path} HTTP/1.1", f"Host: {place.name}"]
    lines += (f"{name}: {value}" for name, value in headers(api_key, call).items())
    if isinstance(call.body, bytes):
        lines.append(f"Content-Length: {len(call.body)}")
    elif call.body is not None:
        lines.append("Transfer-Encoding: chunked")
    elif call.method not in ("GET", "DELETE"):
        lines.append("Content-Length: 0")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def read(status: int, body: bytes, retry_after: str | None = None) -> Any:
    """Read the answer, or raise the ApiError it carries; also where something else than Waypost answers.

    *retry_after* is the header of that name, for answers that are no problem.
    """
    try:
        answer = json.loads(body) if body else {}
    except ValueError:
        answer = None
    if isinstance(answer, dict) and 200 <= status < 300:
        return answer
    problem = answer if isinstance(answer, dict) else {}
    if "checks" in problem:  # of health, which is no problem document
        failing = (f"{name}: {why}" for name, why in problem["checks"].items() if why != "ok")
        problem = {"code": "not_ready", "detail": "; ".join(failing)}
    if retry_after is not None and retry_after.isdecimal():
        problem.setdefault("retry_after", int(retry_after))
    raise ApiError(status, problem)


def pause_s(call: ClientRequest, failed: ClientError, times: int, left_s: float) -> float | None:
    """Return the seconds to wait before *call*, which failed *times*, is repeated; None where it is not, or too late.

    It is where nobody answered, and where the answer is that Waypost is busy or says when to come back, of what may be
    carried out twice.
    """
    if not call.is_repeatable:
        return None
    least_s: float = 0
    if isinstance(failed, ApiError):
        if failed.retry_after_s is None and failed.status not in _BUSY:
            return None
        least_s = failed.retry_after_s or 0
    backoff_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (times - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
    pause = max(backoff_s, least_s)
    return pause if pause <= left_s else None


def items_of(page: Mapping[str, Any]) -> list[Any]:
    """Return the items that a page lists."""
    return next(value for value in page.values() if isinstance(value, list))


def _with_key(notification: Submission) -> Submission:
    """Give *notification* a key of its own where it has none, so that this call may be repeated."""
    if notification.get("idempotency_key") is not None:
        return notification
    return {**notification, "idempotency_key": str(uuid.uuid4())}


def _post(path: str, body: Mapping[str, Any], *, is_repeatable: bool = True) -> ClientRequest:
    return ClientRequest("POST", path, _encode(body), is_repeatable=is_repeatable)


def _encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _is_plain(text: str) -> bool:
    """Tell whether *text* has visible ASCII characters alone, so that it can stand in a head."""
    return text.isascii() and text.isprintable() and " " not in text


def _part(text: str) -> str:
    return quote(text, safe="")


def _query(given: Mapping[str, str | int | None]) -> str:
    asked = _given(**given)
    return "?" + urlencode(asked) if asked else ""


def _given(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}
