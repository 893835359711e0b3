"""The requests that arrived, in the form that the admin API shows."""

import base64
from typing import Any

import msgspec

from waypost.lab import declarative
from waypost.lab.records import Records, RequestRecord

_HIDDEN = ("authorization",)
_SHOWN_CONNECTIONS = 1000


def page(
    records: Records, *, gateway: str | None, token: str | None, notification_id: str | None, after: int, limit: int
) -> list[dict[str, Any]]:
    """List up to *limit* requests with a sequence number above *after* that match everything given, oldest first."""
    found: list[dict[str, Any]] = []
    for record in records.since(after):
        if gateway not in (None, record.gateway) or token not in (None, record.token):
            continue
        if notification_id not in (None, record.notification_id):
            continue
        found.append(_shown(record, records))
        if len(found) >= limit:
            break
    return found


def counts(records: Records) -> dict[str, Any]:
    """Return totals by gateway, and what each of the latest connections carried."""
    connections = list(records.connections.values())[-_SHOWN_CONNECTIONS:]
    shown = []
    for connection in connections:
        fields = msgspec.structs.asdict(connection)
        del fields["session"], fields["limit_streams"], fields["certificate"]
        shown.append(fields)
    gateways = {name: msgspec.structs.asdict(count) for name, count in records.counts.items()}
    return {**gateways, "connections": shown, "evicted": records.evicted}


def summary(records: Records) -> dict[str, dict[str, int]]:
    """Count accepted copies by notification id and token; a Web Push token is the subscription's id."""
    return records.copies


def _shown(record: RequestRecord, records: Records) -> dict[str, Any]:
    shown = msgspec.structs.asdict(record)
    content = records.content(record.seq)
    if content is not None:
        shown["path"] = content.path
        shown["headers"] = {name: value for name, value in content.headers.items() if name not in _HIDDEN}
        shown["payload"] = _decoded(content.body if content.plaintext is None else content.plaintext)
        shown["bytes"] = len(content.body)
        if content.plaintext is not None and record.gateway == "webpush":
            shown["declarative"] = declarative.verdict(content.plaintext)
    return shown


def _decoded(body: bytes) -> Any:
    """Decode JSON as JSON, text as text, anything else as base64."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        pass
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}
