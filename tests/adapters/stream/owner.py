"""What the owner of a notifications service has: a stream, a group, tables with rows, and producers."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from typing import Any

import psycopg
import redis
from psycopg.rows import dict_row

from waypost.telemetry import Event, Silent

STREAM = "stream.notifications.jobs"
GROUP = "notifications-service"
POLL_S = 0.02
SILENT_MS = 300
"""How long an entry must be left alone in tests: ``AUTOCLAIM_MIN_IDLE_MS``."""

TOKENS = """\
CREATE TABLE public.device_token (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    "userId" text NOT NULL,
    token text NOT NULL UNIQUE,
    platform text NOT NULL,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "device_token_userId_idx" ON public.device_token ("userId");
"""
LOG = """\
CREATE SCHEMA notifications;
CREATE TYPE notifications.status AS ENUM ('pending', 'sent', 'partial', 'failed', 'no_tokens');
CREATE TABLE notifications.notification_log (
    id uuid PRIMARY KEY,
    "userId" text NOT NULL,
    channel text NOT NULL,
    title text,
    payload jsonb,
    status notifications.status NOT NULL DEFAULT 'pending',
    note text DEFAULT 'untouched',
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" timestamp(3) NOT NULL
);
"""
"""As an object mapper makes it: ids are made by its client, words are an enum, names are in camel case."""
_DEFINITIONS = """\
SELECT table_schema, table_name, column_name, data_type, udt_name, is_nullable, column_default, ordinal_position
FROM information_schema.columns WHERE table_schema IN ('public', 'notifications') ORDER BY 1, 2, 8
"""


def android_token() -> str:
    """One of the form that the lab takes."""
    return f"{secrets.token_urlsafe(16)}:APA91b{secrets.token_urlsafe(90)}"


class Owner:
    """Their side of it, on real servers."""

    def __init__(self, postgres_url: str, redis_url: str) -> None:
        self.postgres_url = postgres_url
        self.redis_url = redis_url
        self.redis: Any = redis.Redis.from_url(redis_url)

    def sql(self, statement: str, *bound: Any) -> list[dict[str, Any]]:
        """Run one statement, or several without parameters, and give the rows."""
        with psycopg.connect(self.postgres_url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(statement.encode(), bound or None)
            return cursor.fetchall() if cursor.description else []

    def device(self, user: str, platform: str = "android") -> str:
        """Register one; its token."""
        token = android_token()
        self.sql('INSERT INTO device_token ("userId", token, platform) VALUES (%s, %s, %s)', user, token, platform)
        return token

    def add(self, **job: Any) -> str:
        """A flat job; its entry."""
        fields = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in job.items()}
        entry: bytes = self.redis.xadd(STREAM, fields)
        return entry.decode()

    def add_payload(self, **job: Any) -> str:
        """A job as JSON; its entry."""
        entry: bytes = self.redis.xadd(STREAM, {"payload": json.dumps(job)})
        return entry.decode()

    def tokens(self) -> set[str]:
        """All that are registered."""
        return {row["token"] for row in self.sql("SELECT token FROM device_token")}

    def log(self) -> list[dict[str, Any]]:
        """The rows of the log."""
        return self.sql("SELECT * FROM notifications.notification_log")

    def statuses(self) -> dict[str, str]:
        """The status of each user's row, where each has one."""
        rows = self.log()
        found = {row.get("user_id") or row["userId"]: row["status"] for row in rows}
        assert len(found) == len(rows), rows
        return found

    def pending(self) -> dict[str, int]:
        """How often each entry was delivered that nobody acknowledged."""
        found = self.redis.xpending_range(STREAM, GROUP, "-", "+", 10_000)
        return {each["message_id"].decode(): each["times_delivered"] for each in found}

    def unread(self) -> int:
        """Entries that nobody was given yet."""
        (group,) = self.redis.xinfo_groups(STREAM)
        return len(self.redis.xrange(STREAM, b"(" + group["last-delivered-id"]))

    def definitions(self) -> list[dict[str, Any]]:
        """Every column of every table."""
        return self.sql(_DEFINITIONS)

    def close(self) -> None:
        """Let go of Redis."""
        self.redis.close()


class Lines(Silent):
    """The log of the service under test, by the names of events."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def event(self, event: Event, /, **fields: object) -> None:
        """See Telemetry."""
        self.lines.append((event.label, fields))

    def of(self, name: str) -> list[dict[str, object]]:
        """What was said with that name."""
        return [fields for label, fields in self.lines if label == name]


async def until(condition: Callable[[], Any], deadline_s: float = 120.0) -> Any:
    """Ask again and again until there is something."""
    async with asyncio.timeout(deadline_s):
        while not (found := condition()):  # noqa: ASYNC110 - the servers it asks tell nobody
            await asyncio.sleep(POLL_S)
        return found
