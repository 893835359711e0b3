"""What a page of the dashboard costs the server with ten million notifications, of 90 days, on one SQLite file.

They are written straight into the tables: a hundredth failed, a twentieth is still to come, one user has a
hundredth of all, and there are alerts, topics, orders on record and counted results beside them.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from benchmarks.growth import CUT, cut_of
from waypost.bench import stack
from waypost.bench.rows import Row, row
from waypost.bench.stack import CONFIG
from waypost.bootstrap.features import tables
from waypost.domain.content import Content
from waypost.domain.ids import format_id, token_hash
from waypost.domain.time import DAY_MS, HOUR_MS, Instant
from waypost.runtime.python import MODULE
from waypost.stores.sql.connection import connect
from waypost.stores.sql.database import prepare
from waypost.stores.sql.rows import content_body
from waypost.stores.sql.settings import SqlSettings

ROWS: Final = int(os.environ.get("ROWS", "10_000_000"))
"""How many notifications; there are a hundredth of each other thing, but for devices."""
KEPT: Final = os.environ.get("STORE", "")
"""A folder whose store is used again, and kept."""
WANTED_MS: Final = 100.0
TIMES: Final = 10
USERS: Final = 100_000
DAYS: Final = 90
BUSY: Final = "busy"
"""A user with a hundredth of all notifications."""

# ruff: noqa: S608 - put together of constants
_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)"
_AT = f":since + n * {DAYS * DAY_MS} / :rows"
_USER = f"CASE WHEN n % 100 = 7 THEN '{BUSY}' ELSE 'user-' || (n * 7919 % {USERS}) END"
_FAILED = "n % 100 = 3"
_OPEN = "n > :rows * 19 / 20"
_LANE = "CASE n % 4 WHEN 0 THEN 'high' WHEN 1 THEN 'low' ELSE 'normal' END"
_STATUS = f"CASE WHEN {_OPEN} THEN 'pending' WHEN {_FAILED} THEN 'failed' ELSE 'sent' END"
_STATEMENTS: Final = (
    f"""{_NUMBERS} INSERT INTO notification (seq, id, app, caller, user_id, shard, lane, kind, urgency, guarantee,
        status, due_at, created_at, expires_at, ttl_ms, finished_at, round, slice)
    SELECT n, id_of(n, {_AT}), 'demo', 'bench', {_USER}, n % 1024, {_LANE}, 'visible', 'normal', 'at_least_once',
        {_STATUS}, CASE WHEN {_OPEN} THEN :later + n END, {_AT}, {_AT} + {DAY_MS}, {DAY_MS},
        CASE WHEN NOT {_OPEN} THEN {_AT} + 500 END, 0, n / :cut
    FROM numbers""",
    CUT,
    f"{_NUMBERS} INSERT INTO content (seq, body) SELECT n, :body FROM numbers",
    f"""{_NUMBERS} INSERT INTO receipt (notification_id, n, shard, app, device_id, channel, status, attempt, retries,
        throttles, dead, code, reason, failure_class, first_attempt_at, last_attempt_at, sent_at, resolved_at)
    SELECT id_of(n, {_AT}), 0, n % 1024, 'demo', 'phone', 'fcm', {_STATUS}, 1, 0, 0, {_FAILED},
        CASE WHEN {_FAILED} THEN 'UNREGISTERED' END, CASE WHEN {_FAILED} THEN 'the device is gone' END,
        CASE WHEN {_FAILED} THEN 'terminal' END, {_AT} + 400, {_AT} + 400, {_AT} + 500, {_AT} + 500
    FROM numbers WHERE NOT {_OPEN}""",
    f"""INSERT INTO counter (app, lane, hour, status, delta)
    SELECT app, lane, hour,
        CASE word WHEN 'status' THEN status WHEN 'delivery' THEN 'delivery:' || status ELSE word END, sum(n) FROM
        (SELECT app, lane, created_at / {HOUR_MS} AS hour, status, count(*) AS n FROM notification GROUP BY 1, 2, 3, 4),
        (SELECT 'requests' AS word UNION SELECT 'accepted' UNION SELECT 'targets' UNION SELECT 'status'
         UNION SELECT 'delivery')
    WHERE status <> 'pending' OR word IN ('requests', 'accepted', 'status') GROUP BY 1, 2, 3, 4""",
    f"""INSERT INTO device (app, user_id, device_id, platform, token, token_hash, registered_at, last_seen_at,
        token_updated_at, active, token_use)
    {_NUMBERS} SELECT 'demo', CASE n WHEN {USERS} THEN '{BUSY}' ELSE 'user-' || n END, 'phone', 'android',
        'token-of-' || n, hash_of('token-of-' || n), :since, :since, :since, 1, 'alert'
    FROM numbers WHERE n <= {USERS}""",
    f"""{_NUMBERS} INSERT INTO alert (notification_id, app, type, reason, db_status, retry_count, raised_at,
        resolved_at, how)
    SELECT id_of(n * 100, :since + n * {100 * DAYS * DAY_MS} / :rows), 'demo', 'orphaned_pending', 'nobody took it',
        'pending', 0, :now, CASE WHEN n <> 5 THEN :now END, CASE WHEN n <> 5 THEN 'resolved' END
    FROM numbers WHERE n <= :rows / 100""",
    f"""{_NUMBERS} INSERT INTO audit (at, app, ordered_by, origin, act, subject)
    SELECT {_AT}, 'demo', 'dashboard:ann', '127.0.0.1', 'dead.replayed', n FROM numbers WHERE n <= :rows / 100""",
    f"""{_NUMBERS} INSERT INTO topic (app, name, number, description, open, created_at)
    SELECT 'demo', 'topic-' || n, n + 1000000000, '', 1, :since FROM numbers WHERE n <= 10""",
    f"""{_NUMBERS} INSERT INTO topic_member (app, user_id, topic, at)
    SELECT 'demo', 'user-' || n, topic.number, :since FROM numbers, topic WHERE n <= {USERS}""",
    f"""{_NUMBERS} INSERT INTO rollup (app, slot, event, type, channel, platform, campaign, variant, template,
        deliveries, notifications)
    SELECT 'demo', :since / {HOUR_MS // 4} + n, event, type, channel, channel, campaign, '', '', 10, 10
    FROM numbers, (SELECT 'sent' AS event UNION SELECT 'delivered' UNION SELECT 'opened'),
        (SELECT 'offer' AS type UNION SELECT 'code'), (SELECT 'fcm' AS channel UNION SELECT 'apns'),
        (SELECT '' AS campaign UNION SELECT 'spring') WHERE n <= {DAYS * 96}""",
)


def run() -> list[Row]:
    """Each page, several times: the most that one took, of all the CPU of the process meanwhile."""
    with tempfile.TemporaryDirectory(prefix="waypost-pages-") as name:
        folder = Path(KEPT or name)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "waypost.db"
        if not file.exists():
            fill(file)
        with serving(folder, file) as (pid, url):
            return measured(pid, _link(folder, url), some_ids(file))


def fill(file: Path) -> None:
    """Write the store; its indexes are made after its rows."""
    prepare(SqlSettings(f"sqlite:///{file}"), Instant(0), tables())
    connection: Any = connect(file, busy_timeout_s=5)
    connection.create_function("id_of", 2, _id, deterministic=True)
    connection.create_function("hash_of", 1, token_hash, deterministic=True)
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        " AND tbl_name IN ('notification', 'receipt')"
    ).fetchall()
    now = int(time.time() * 1000)
    bound: dict[str, Any] = {"rows": ROWS, "now": now, "since": now - DAYS * DAY_MS, "later": now + 365 * DAY_MS}
    bound["cut"] = cut_of(ROWS)
    bound["body"] = content_body(Content(title="Your parcel is here", body="It was left at the front door."))
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -500000"):
        connection.execute(f"PRAGMA {pragma}")
    for index, _ in indexes:
        connection.execute(f"DROP INDEX {index}")
    connection.execute("BEGIN")
    for statement in _STATEMENTS:
        connection.execute(statement, bound)
    connection.execute("UPDATE sequence SET value = :rows + 2000000000 WHERE name = 'notification'", bound)
    connection.execute("COMMIT")
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def _id(n: int, at: int) -> bytes:
    """A UUIDv7 of that time."""
    return at.to_bytes(6, "big") + (0x7000).to_bytes(2, "big") + (1 << 63 | n).to_bytes(8, "big")


def some_ids(file: Path) -> dict[str, str]:
    """A notification of each status."""
    connection: Any = connect(file, busy_timeout_s=5)
    some = "SELECT status, min(id) FROM notification WHERE seq < 1000 OR seq > ? GROUP BY status"
    rows = connection.execute(some, (ROWS - 9,))
    found = {status: format_id(one) for status, one in rows.fetchall()}
    connection.close()
    return found


def pages_of(ids: dict[str, str]) -> list[str]:
    """The addresses, below the app's."""
    return [
        "overview",
        "events",
        "events?status=failed",
        "events?status=cancelled",
        "events?user=user-5",
        f"events?user={BUSY}",
        f"events?user={BUSY}&status=cancelled",
        "events?until=2026-10-01T00:00&status=failed",
        *(f"events/{one}" for one in ids.values()),
        "failed",
        "failed?code=NONE",
        "alerts",
        "alerts?all=1",
        "users/user-5",
        f"users/{BUSY}",
        "campaigns",
        "audiences",
        "audiences/topics/topic-1",
        "templates",
        "jobs",
        "analytics",
        "analytics?span=quarter",
        "analytics?span=year&campaign=spring",
        "providers",
        "providers/-/test",
        "access",
        "access?by=nobody",
        "settings?all=1",
    ]


@contextmanager
def serving(folder: Path, file: Path) -> Iterator[tuple[int, str]]:
    """One worker that serves the store, and nothing else to do."""
    settings: dict[str, Any] = {"listen": "127.0.0.1:0", "workers": 1, "log": {"level": "warning"}}
    settings |= {"apps": {"demo": {}}, "store": {"url": f"sqlite:///{file}"}, "analytics": {"enabled": True}}
    settings["retention"] = {"notifications_days": 400}
    (folder / CONFIG).write_text(yaml.safe_dump(settings))
    with stack.serving(folder) as served:
        yield served


def _link(folder: Path, url: str) -> str:
    """The link that lets a browser in."""
    command = [*MODULE, "waypost.cli", "dashboard", "--config", str(folder / "waypost.yaml"), "--url", url, "--json"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return str(json.loads(said)["url"])


def measured(pid: int, link: str, ids: dict[str, str]) -> list[Row]:
    """The median and the most of each page, without what the process does by itself."""
    rows = []
    with httpx.Client(base_url=link.partition("?")[0] + "/demo/", timeout=120) as browser:
        browser.get(link)
        for page in pages_of(ids):
            taken = []
            for _ in range(TIMES + 1):
                before = _cpu_ms(pid)
                answer = browser.get(page)
                taken.append(_cpu_ms(pid) - before)
                assert answer.status_code == 200, (page, answer.status_code, answer.text[:500])
            first, *others = taken
            median, most = sorted(others)[len(others) // 2], max(others)
            what = f"wanted: {WANTED_MS:.0f}; most {most:.0f}, first {first:.0f}"
            rows.append(row("pages", f"{page}: CPU of the server", median, "ms", what, median / WANTED_MS))
    return rows


def _cpu_ms(pid: int) -> float:
    """CPU milliseconds of all threads of a process so far."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6
