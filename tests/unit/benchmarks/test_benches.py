"""What the benches take for granted of the product: its tables and the names of its modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from benchmarks import growth, stages
from waypost.bench import registry
from waypost.bench.programs import Load, Programs
from waypost.stores.sql.connection import connect
from waypost.stores.sql.migrate import migrate, sqlite_engine


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """An empty store."""
    path = tmp_path / "waypost.db"
    migrate(sqlite_engine(path))
    return path


@pytest.mark.parametrize("prefix", sorted({prefix for _, prefixes in stages.STAGES for prefix in prefixes}))
def test_every_stage_names_modules_that_are_there(prefix: str) -> None:
    """A module that moved would be counted as something else."""
    assert importlib.util.find_spec(prefix) is not None


def test_the_innermost_frame_that_is_known_says_the_stage() -> None:
    """What a sender has the HTTP/2 client do is the client's."""
    sender, client = "waypost.channels.apns.sender:send", "waypost.http2.pool:request"
    spent = {f"uvloop:run;{sender};{client};ssl:write": 2.0, f"uvloop:run;{sender};json:dumps": 1.0, "uvloop:run": 0.5}
    assert stages.by_stage(spent) == [
        ("send: HTTP/2 and TLS", 2.0),
        ("send: render and judge", 1.0),
        (stages.OTHER, 0.5),
    ]


def test_history_and_queue_fit_the_tables(database: Path) -> None:
    """Each notification has its content; the finished ones two receipts, the waiting ones none; no id comes twice."""
    growth.write_history(database, 30)
    growth.write_queue(database, 20)
    connection = connect(database, read_only=True)
    try:
        (whole,) = connection.execute("SELECT count(DISTINCT id) FROM notification JOIN content USING (seq)").fetchone()
        statuses = dict(connection.execute("SELECT status, count(*) FROM notification GROUP BY status"))
        (receipts,) = connection.execute(
            "SELECT count(*) FROM receipt JOIN notification ON id = notification_id"
        ).fetchone()
        (last,) = connection.execute("SELECT value FROM sequence WHERE name = 'notification'").fetchone()
    finally:
        connection.close()
    assert (whole, statuses, receipts, last) == (50, {"sent": 30, "pending": 20}, 60, 50)


def test_the_registry_has_the_mix_that_is_named(database: Path) -> None:
    """2.5 devices a user: 60 % Android, 30 % iOS, 10 % browsers; a hundredth dead."""
    connection = connect(database)
    try:
        registry.register(connection, registry.devices("https://127.0.0.1:1", 400))
        platforms = dict(connection.execute("SELECT platform, count(*) FROM device GROUP BY platform"))
        (dead,) = connection.execute("SELECT count(*) FROM device WHERE token LIKE '%dead%'").fetchone()
    finally:
        connection.close()
    assert platforms == {"android": 600, "ios": 300, "web": 100}
    assert dead == 10


def test_a_load_is_told_its_key_where_nobody_else_reads_it() -> None:
    """In its environment: everybody on the machine can read the arguments of a process."""
    shown = (
        'import json, os, sys; print(json.dumps({"statuses": {}, "said": [*sys.argv, os.environ["WAYPOST_API_KEY"]]}))'
    )
    echo = Programs("echo", (), (sys.executable, "-c", shown))
    load = Load(echo, "http://127.0.0.1:1", "wp_secret", count=1)
    assert load.result()["said"] == ["-c", "127.0.0.1:1", "count=1", "wp_secret"]
