"""Views that show the tables under the names that other descriptions of such a service give them, for reports.

What was said to users is not in them: it lies in ``content``, encoded, and is read through the API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.vocabulary import Vocabulary, notification_word, receipt_word

Columns = dict[str, str]
"""The expression of each column, by its name."""


class DeclaredType(Struct, frozen=True):
    """A type of message that an app declares, and whether it is sent to users who have not said."""

    app: str
    name: str
    enabled: bool


class _Sqlite:
    """SQLite's: a view's name begins with the vocabulary's."""

    def hex(self, blob: str) -> str:
        """Write bytes as hex."""
        return f"lower(hex({blob}))"

    def uuid(self, text: str) -> str:
        """Leave a UUID a text."""
        return text

    def hex3(self, number: str) -> str:
        """Write the lowest 12 bits of a number as hex."""
        return f"printf('%03x', {number} & 4095)"

    def time(self, ms: str) -> str:
        """Write milliseconds since 1970 as a time."""
        return f"strftime('%Y-%m-%dT%H:%M:%fZ', {ms} / 1000.0, 'unixepoch')"

    def object(self, pairs: str) -> str:
        """Build a JSON object."""
        return f"json_object({pairs})"

    def clock(self, minutes: str) -> str:
        """Write minutes since midnight as a time of the clock."""
        return f"substr(time({minutes} * 60, 'unixepoch'), 1, 5)"

    def names(self, name: str, which: str) -> str:
        """Build a JSON array of names from the rows that *which* says."""
        return f"(SELECT json_group_array({name}) {which})"

    def said_of(self, objects: str, key: str) -> str:
        """Read ``enabled`` of what an object of objects has under a key; NULL where it has nothing."""
        of_key = f"json_each({objects}) AS said WHERE said.key = {key}"
        return f"(SELECT json_extract(said.value, '$.enabled') FROM {of_key})"  # noqa: S608 - columns of ours

    def latest(self, instants: str) -> str:
        """Choose the greatest."""
        return f"max({instants})"

    def name(self, vocabulary: Vocabulary, view: str) -> str:
        """Name a view."""
        return f"{vocabulary}_{view}"


class _Postgres(_Sqlite):
    """PostgreSQL's: the views are in a schema of the vocabulary's name."""

    def hex(self, blob: str) -> str:
        """See _Sqlite."""
        return f"encode({blob}, 'hex')"

    def uuid(self, text: str) -> str:
        """Make a text a UUID."""
        return f"({text})::uuid"

    def hex3(self, number: str) -> str:
        """See _Sqlite."""
        return f"lpad(to_hex({number} & 4095), 3, '0')"

    def time(self, ms: str) -> str:
        """See _Sqlite."""
        return f"to_timestamp({ms} / 1000.0)"

    def object(self, pairs: str) -> str:
        """See _Sqlite."""
        return f"json_build_object({pairs})"

    def clock(self, minutes: str) -> str:
        """See _Sqlite."""
        return f"to_char(make_interval(mins => {minutes}::int), 'HH24:MI')"

    def names(self, name: str, which: str) -> str:
        """See _Sqlite."""
        return f"(SELECT coalesce(json_agg({name}), '[]') {which})"

    def said_of(self, objects: str, key: str) -> str:
        """See _Sqlite."""
        return f"({objects}::json -> {key} ->> 'enabled')::boolean::int"

    def latest(self, instants: str) -> str:
        """See _Sqlite."""
        return f"greatest({instants})"

    def name(self, vocabulary: Vocabulary, view: str) -> str:
        """See _Sqlite."""
        return f"{vocabulary}.{view}"


_STATUS: Final = (
    "(CASE WHEN notification.status = 'pending' AND notification.due_at IS NULL THEN 'processing'"
    " WHEN notification.status = 'pending' AND notification.due_at = notification.scheduled_at THEN 'scheduled'"
    " ELSE notification.status END)"
)
_OF_RECEIPTS: Final = "(SELECT {} FROM receipt WHERE receipt.notification_id = notification.id)"
_RECEIPT: Final = "receipt JOIN notification ON notification.id = receipt.notification_id"
_READ: Final = (
    "notification LEFT JOIN (SELECT notification_id, read_at FROM feed_entry) AS mark"
    " ON mark.notification_id = notification.id"
)
_TO_DEVICE: Final = (
    f"{_RECEIPT} LEFT JOIN device ON device.app = receipt.app"
    " AND device.user_id = notification.user_id AND device.device_id = receipt.device_id"
)
_OF_PROFILE: Final = (
    "preference LEFT JOIN user_profile ON user_profile.app = preference.app"
    " AND user_profile.user_id = preference.user_id"
)
Named = dict[str, tuple[str, Columns]]
"""The rows and columns of each view, by its name."""


def statements(
    vocabulary: Vocabulary, *, is_postgres: bool, drops: bool = False, types: Sequence[DeclaredType] = ()
) -> list[str]:
    """Write the statements that make the views anew, or that only drop them; *types* are those of all apps."""
    engine = _Postgres() if is_postgres else _Sqlite()
    views = _VIEWS[vocabulary](engine, types)
    names = {view: engine.name(vocabulary, view) for view in views}
    dropped = [f"DROP VIEW IF EXISTS {name};" for name in names.values()]
    if drops:
        return dropped
    schema = [f"CREATE SCHEMA IF NOT EXISTS {vocabulary};"] if is_postgres else []
    return schema + dropped + [_view(names[view], rows, columns) for view, (rows, columns) in views.items()]


def _view(name: str, rows: str, columns: Columns) -> str:
    shown = ",\n    ".join(f"{expression} AS {column}" for column, expression in columns.items())
    return f"CREATE VIEW {name} AS SELECT\n    {shown}\nFROM {rows};"


def _notify(engine: _Sqlite, _: Sequence[DeclaredType]) -> Named:
    """Build the views in the words of ``POST /v1/notify``."""
    notifications = {
        "notification_id": _id(engine, "notification.id"),
        "caller_id": "notification.caller",
        "user_id": "notification.user_id",
        "notif_type": "notification.kind",
        "urgency": "notification.urgency",
        "ttl_seconds": "notification.ttl_ms / 1000",
        "status": _status(Vocabulary.NOTIFY),
        "created_at": engine.time("notification.created_at"),
        "expires_at": engine.time("notification.expires_at"),
        "app": "notification.app",
    }
    words = {str(it): receipt_word(Vocabulary.NOTIFY, it) for it in DeliveryStatus}
    receipts = {
        "receipt_id": _receipt_id(engine),
        "notification_id": _id(engine, "receipt.notification_id"),
        "device_id": "receipt.device_id",
        "user_id": "notification.user_id",
        "notif_type": "notification.kind",
        "channel": "receipt.channel",
        "delivery_status": _case("receipt.status", words),
        "gateway_status": "receipt.code",
        "attempt_count": "receipt.attempt",
        "next_retry_at": f"CASE WHEN receipt.attempt > 0 THEN {engine.time('receipt.due_at')} END",
        "last_attempted_at": engine.time("receipt.last_attempt_at"),
        "sent_at": engine.time("receipt.sent_at"),
        "resolved_at": engine.time("receipt.resolved_at"),
        "created_at": engine.time("notification.created_at"),
        "app": "receipt.app",
    }
    devices = {
        "token_id": _token_id(engine),
        "user_id": "device.user_id",
        "device_id": "device.device_id",
        "platform": "device.platform",
        "push_token": "device.token",
        "app_bundle": "device.app",
        "app_version": "device.app_version",
        "os_version": "device.os_version",
        "is_active": "device.active = 1",
        "registered_at": engine.time("device.registered_at"),
        "last_seen_at": engine.time("device.last_seen_at"),
        "token_updated_at": engine.time("device.token_updated_at"),
    }
    return {
        "notifications": ("notification", notifications),
        "delivery_receipts": (_RECEIPT, receipts),
        "device_tokens": ("device", devices),
    }


def _user_api(engine: _Sqlite, types: Sequence[DeclaredType]) -> Named:
    """Build the views in the words of the calls under ``/api``."""
    last_tried = _OF_RECEIPTS.format("max(receipt.last_attempt_at)")
    changes = ("notification.finished_at", last_tried, "mark.read_at")
    changed = ", ".join(["notification.created_at", *(f"coalesce({each}, 0)" for each in changes)])
    notifications = {
        "id": _id(engine, "notification.id"),
        "user_id": "notification.user_id",
        "priority": _case("notification.urgency", {"critical": "high"}),
        "status": _status(Vocabulary.USER_API),
        "sent_at": engine.time(_OF_RECEIPTS.format("min(receipt.sent_at)")),
        "read_at": engine.time("mark.read_at"),
        "created_at": engine.time("notification.created_at"),
        "updated_at": engine.time(engine.latest(changed)),
        "fcm_message_id": _OF_RECEIPTS.format("min(CASE receipt.channel WHEN 'fcm' THEN receipt.provider_id END)"),
        "error_message": f"coalesce(notification.reason, {_OF_RECEIPTS.format('min(receipt.reason)')})",
        "retry_count": f"coalesce({_OF_RECEIPTS.format('max(receipt.retries)')}, 0)",
        "scheduled_for": engine.time("notification.scheduled_at"),
        "app": "notification.app",
    }
    used = "device.last_seen_at, coalesce(device.last_used_at, 0), coalesce(device.deactivated_at, 0)"
    devices = {
        "id": _token_id(engine),
        "user_id": "device.user_id",
        "token": "device.token",
        "platform": "device.platform",
        "device_info": engine.object("'os_version', device.os_version, 'app_version', device.app_version"),
        "is_active": "device.active = 1",
        "created_at": engine.time("device.registered_at"),
        "updated_at": engine.time(engine.latest(used)),
        "last_used_at": engine.time("device.last_used_at"),
        "app": "device.app",
    }
    deliveries = {
        "id": _receipt_id(engine),
        "notification_id": _id(engine, "receipt.notification_id"),
        "token_id": _token_id(engine),
        "status": "CASE WHEN receipt.sent_at IS NOT NULL THEN 'success' WHEN receipt.attempt > 0 THEN 'failed' END",
        "error_code": "receipt.code",
        "error_message": "receipt.reason",
        "sent_at": engine.time("receipt.sent_at"),
        "app": "receipt.app",
    }
    preferences = {
        "user_id": "preference.user_id",
        "enabled_types": _enabled_types(engine, types),
        "quiet_hours_start": engine.clock("preference.quiet_start"),
        "quiet_hours_end": engine.clock("preference.quiet_end"),
        "timezone": "user_profile.time_zone",
        "frequency_limit": "preference.frequency_limit",
        "updated_at": engine.time("preference.changed_at"),
        "app": "preference.app",
    }
    return {
        "notifications": (_READ, notifications),
        "device_tokens": ("device", devices),
        "notification_deliveries": (_TO_DEVICE, deliveries),
        "user_notification_preferences": (_OF_PROFILE, preferences),
    }


def _enabled_types(engine: _Sqlite, types: Sequence[DeclaredType]) -> str:
    """Write the names of the types that a user wants by some channel: of all that their app declares now."""
    rows = [f"SELECT {_text(it.app)} AS app, {_text(it.name)} AS name, {int(it.enabled)} AS enabled" for it in types]
    declared = " UNION ALL ".join(rows) or "SELECT NULL AS app, NULL AS name, 0 AS enabled"
    said = engine.said_of("preference.types", "declared.name")
    wanted = f"preference.enabled = 1 AND coalesce({said}, declared.enabled) = 1"
    return engine.names(
        "declared.name", f"FROM ({declared}) AS declared WHERE declared.app = preference.app AND {wanted}"
    )


def _text(text: str) -> str:
    """Write a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


_VIEWS: Final = {Vocabulary.NOTIFY: _notify, Vocabulary.USER_API: _user_api}
NAMED: Final = tuple(_VIEWS)
"""The vocabularies that have views."""


def _case(column: str, words: Mapping[str, str | None]) -> str:
    whens = " ".join(f"WHEN '{ours}' THEN '{theirs}'" for ours, theirs in words.items() if theirs is not None)
    return f"CASE {column} {whens} ELSE {column} END"


def _status(vocabulary: Vocabulary) -> str:
    return _case(_STATUS, {str(it): notification_word(vocabulary, it) for it in NotificationStatus})


def _id(engine: _Sqlite, blob: str) -> str:
    """Write an id as its canonical text."""
    text = engine.hex(blob)
    parts = [f"substr({text}, {first}, {n})" for first, n in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return engine.uuid(" || '-' || ".join(parts))


def _receipt_id(engine: _Sqlite) -> str:
    """Make a UUID (version 8) of a receipt: its notification's, with the receipt's number in 12 of its bits."""
    text = engine.hex("receipt.notification_id")
    time = f"substr({text}, 1, 8) || '-' || substr({text}, 9, 4)"
    rest = f"substr({text}, 17, 4) || '-' || substr({text}, 21, 12)"
    return engine.uuid(f"{time} || '-8' || {engine.hex3('receipt.n')} || '-' || {rest}")


def _token_id(engine: _Sqlite) -> str:
    """Make a UUID (version 8) of a token's hash: no two active devices of an app have the same."""
    text = engine.hex("device.token_hash")
    time = f"substr({text}, 1, 8) || '-' || substr({text}, 9, 4)"
    rest = f"substr({text}, 13, 3) || '-8' || substr({text}, 16, 3) || '-' || substr({text}, 19, 12)"
    uuid = engine.uuid(f"{time} || '-8' || {rest}")
    return f"CASE WHEN device.token_hash IS NOT NULL THEN {uuid} END"
