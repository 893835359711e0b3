"""The drop-in among other consumers, and from its start to its end."""

from __future__ import annotations

import asyncio
from importlib.resources import files

import psycopg
import pytest

from tests.adapters.stream.conftest import Serving, sent
from tests.adapters.stream.owner import GROUP, STREAM, Lines, Owner, until
from tests.shows import shows
from waypost.bootstrap.drop_in import consume
from waypost.compat.jobs_stream.pool import SIZE
from waypost.config.drop_in import drop_in
from waypost.domain.errors import ConfigurationError
from waypost.lab import Lab
from waypost.lab.faults import parse_rules

pytestmark = pytest.mark.asyncio

SLOW = parse_rules([{"where": "fcm", "do": {"latency_ms": 500}}])


@shows("S0-01", "S0-23")
async def test_it_goes_on_where_the_service_before_left_off(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirements S0-01, S0-22 and S0-23: what a dead consumer held is taken over, what was acknowledged stays so."""
    for user in ("ann", "ben", "cleo"):
        owner.device(user)
    done = owner.add(userId="ann", title="Done")
    owner.redis.xgroup_create(STREAM, GROUP, 0)
    owner.redis.xreadgroup(GROUP, "dead", {STREAM: ">"})
    owner.redis.xack(STREAM, GROUP, done)
    owner.add(userId="ben", title="Held")
    owner.redis.xreadgroup(GROUP, "dead", {STREAM: ">"})
    owner.add(userId="cleo", title="Fresh")
    async with serving():
        await until(lambda: owner.statuses() == {"ben": "sent", "cleo": "sent"} and owner.pending() == {})
    assert {message["notification"]["title"] for message in sent(lab)} == {"Held", "Fresh"}


@shows("S0-01")
async def test_two_share_a_stream(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirement S0-01: no fresh entry is handed to both."""
    owner.device("ann")
    patient = {"AUTOCLAIM_MIN_IDLE_MS": "30000"}  # this loop is all three's, and stands still at times
    async with serving(**patient), serving(**patient):
        for n in range(60):
            owner.add(userId="ann", title=f"Number {n}")
        await until(lambda: len(owner.log()) == 60 and {row["status"] for row in owner.log()} == {"sent"})
        await until(lambda: owner.pending() == {})
    titles = [message["notification"]["title"] for message in sent(lab)]
    assert sorted(titles) == sorted({f"Number {n}" for n in range(60)})


@shows("S0-30", "S0-31")
async def test_the_job_in_hand_is_finished_and_no_other_is_read(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirements S0-30 and S0-31: nothing is left open either, neither here nor there."""
    owner.device("ann")
    await lab.script(SLOW)
    async with serving() as log:
        owner.add(userId="ann", title="In hand")
        await until(lambda: owner.statuses() == {"ann": "pending"})
        await until(lambda: log.of("process.ready"))
    owner.add(userId="ann", title="Too late")
    assert owner.statuses() == {"ann": "sent"}
    assert owner.pending() == {}
    assert owner.unread() == 1
    assert owner.redis.xinfo_consumers(STREAM, GROUP) == []
    assert _connections(owner) == {"postgres": 0, "redis": 1}


@shows("S0-32")
async def test_it_keeps_to_its_connections(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirement S0-32: one pool, and to Redis one connection for commands and one that waits."""
    for n in range(40):
        owner.device(f"user-{n}")
    async with serving():
        seen = []
        for _ in range(3):
            for n in range(40):
                owner.add(userId=f"user-{n}", title="Hello")
            seen.append(_connections(owner))
            await until(lambda: owner.unread() == 0 and owner.pending() == {})
        assert all(each["redis"] == 3 and each["postgres"] <= SIZE for each in seen), seen


@shows("S0-29")
async def test_a_start_that_cannot_be_reads_nothing(owner: Owner, lab: Lab, environment: dict[str, str]) -> None:
    """Requirement S0-29: a bad credential, tables that are not there, a column that nobody fills."""
    owner.add(userId="ann", title="Hello")
    (lab.settings.directory / "bad.json").write_text("{}")
    cases = {
        "service_account_file": {"GOOGLE_APPLICATION_CREDENTIALS": str(lab.settings.directory / "bad.json")},
        "TOKEN_TABLE": {"TOKEN_TABLE": "public.missing"},
        "TOKEN_COLUMNS": {"TOKEN_COLUMNS": "token=missing"},
        "LOG_COLUMNS": {"LOG_TABLE": "public.needs_more"},
        "DATABASE_URL": {"DATABASE_URL": owner.postgres_url + "_missing"},
    }
    owner.sql("CREATE TABLE needs_more (id serial, user_id text, status text, tenant text NOT NULL)")
    for named, wrong in cases.items():
        with pytest.raises(ConfigurationError, match=named):
            await consume(drop_in(environment | wrong), Lines(), asyncio.Event())
    assert owner.redis.xinfo_groups(STREAM) == []


async def test_rows_that_the_log_refuses_are_left_to_come_again(owner: Owner, lab: Lab, serving: Serving) -> None:
    """One such job does not stop those beside it, and ends as every entry does that nobody can deliver."""
    owner.device("ann")
    owner.sql("CREATE SCHEMA notifications")
    owner.sql(
        "CREATE TABLE notifications.notification_log (id serial PRIMARY KEY, user_id varchar(5) NOT NULL, status text)"
    )
    async with serving(MAX_DELIVERY_COUNT="2") as log:
        owner.add(userId="too long for it", title="Hello")
        owner.add(userId="ann", title="Hello")
        await until(lambda: owner.statuses() == {"ann": "sent"})
        await until(lambda: log.of("notifications.max_retries") and owner.pending() == {})
    assert len(log.of("notifications.unreadable")) == 1


@shows("S0-34")
async def test_the_migration_may_be_run_again(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirement S0-34: by hand into an empty database, and by each start."""
    script = (files("waypost.compat.jobs_stream") / "001_init.sql").read_text()
    owner.sql(script)
    before = owner.definitions()
    owner.sql(script)
    async with serving(), serving():
        pass
    assert owner.definitions() == before


_OURS = """\
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ 'waypost'
"""


def _connections(owner: Owner) -> dict[str, int]:
    """How many the drop-in has to the database, and everybody to this number of Redis."""
    number = owner.redis_url.rpartition("/")[2]
    there = [each for each in owner.redis.client_list() if each["db"] == number]
    with psycopg.connect(owner.postgres_url) as connection:
        counted = connection.execute(_OURS).fetchone()
    assert counted is not None
    return {"postgres": counted[0], "redis": len(there)}
