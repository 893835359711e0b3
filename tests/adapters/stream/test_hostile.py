"""Jobs that mean no good: what can be sent is sent and logged as it was written, the rest is put aside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.stream.conftest import Serving, sent
from tests.adapters.stream.owner import STREAM, Owner, until
from tests.hostile.corpus import Case, Refused, cases
from tests.hostile.texts import MARK, TEXTS
from tests.tables import AddRow
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio

NUL = "NUL"
"""PostgreSQL's text has none."""


async def test_every_text_reaches_the_device_and_the_log_as_it_was_written(
    owner_of_log: Owner, lab: Lab, serving: Serving, table: AddRow
) -> None:
    """In both forms of a job, in title, body, channel and data."""
    owner = owner_of_log
    jobs: dict[str, dict[str, Any]] = {}
    for name, text in TEXTS.items():
        for form in ("fields", "payload"):
            said = {"channel": text.said, "title": text.said, "body": text.said, "data": {"text": text.said}}
            jobs[f"{form}: {name}"] = {"userId": f"{form}: {name}", **said}
    for user, job in jobs.items():
        owner.device(user)
        (owner.add if user.startswith("fields") else owner.add_payload)(**job)
    wanted = {user: job for user, job in jobs.items() if not user.endswith(NUL)}
    async with serving() as log:
        await until(lambda: owner.unread() == 0 and owner.pending() == {})
    assert owner.statuses() == dict.fromkeys(wanted, "sent")
    rows = {row["userId"]: row for row in owner.log()}
    for user, job in wanted.items():
        assert (rows[user]["title"], rows[user]["channel"]) == (job["title"], job["channel"]), user
        assert rows[user]["payload"] == job["data"], user
    pushed = [(each["notification"], each["data"]["text"]) for each in sent(lab)]
    expected = [({"title": job["title"], "body": job["body"]}, job["title"]) for job in wanted.values()]
    assert sorted(pushed, key=str) == sorted(expected, key=str)
    assert len(log.of("notifications.unreadable")) == len(jobs) - len(wanted)
    assert MARK not in str(log.lines)
    table("hostile submissions", door="drop-in", kept=len(wanted), refused=len(jobs) - len(wanted))


async def test_every_user_is_looked_up_as_written(owner: Owner, serving: Serving) -> None:
    """Whatever the name means elsewhere, it is somebody without a device."""
    users = {text.said for name, text in TEXTS.items() if name != NUL}
    for user in users:
        owner.add(userId=user, title="Hello")
    async with serving() as log:
        await until(lambda: owner.unread() == 0 and owner.pending() == {})
        assert owner.statuses() == dict.fromkeys(users, "no_tokens")
    assert MARK not in str(log.lines)


async def test_what_is_no_job_is_put_aside_and_holds_up_nothing(owner: Owner, serving: Serving) -> None:
    """Bytes that are no JSON, JSON that is no object; the job behind all of them is done."""
    bad = [case for case in cases() if is_no_object(case)]
    for case in bad:
        owner.redis.xadd(STREAM, {"payload": case.body})
    owner.add(userId="last", title="Hello")
    async with serving() as log:
        await until(lambda: owner.unread() == 0 and owner.pending() == {})
        assert owner.statuses() == {"last": "no_tokens"}
    assert len(log.of("notifications.unreadable")) == len(bad) > 20
    assert MARK not in str(log.lines)


async def test_a_job_that_the_table_refuses_holds_up_nothing(owner: Owner, serving: Serving) -> None:
    """A user of another type than the table's own, alone and among others."""
    owner.sql("CREATE SCHEMA notifications")
    owner.sql("CREATE TABLE notifications.notification_log (id serial, user_id uuid NOT NULL, status text NOT NULL)")
    user = "6f1c2d3e-0000-4000-8000-000000000001"
    async with serving(MAX_DELIVERY_COUNT="2") as log:
        owner.add(userId="somebody", title=TEXTS["SQL"].said)
        await until(lambda: log.of("notifications.unreadable"))
        owner.add(userId=user, title="Hello")
        owner.add(userId="nobody", title="Hello")
        await until(lambda: len(log.of("notifications.max_retries")) == 2 and owner.pending() == {})
        await until(lambda: [(str(row["user_id"]), row["status"]) for row in owner.log()] == [(user, "no_tokens")])
    assert MARK not in str(log.lines)


def is_no_object(case: Case) -> bool:
    """Whether no field of it is at fault, but all of it."""
    return isinstance(case.must, Refused) and case.must.field in ("", "data[...]") and not _is_object(case.body)


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body, parse_constant=float), dict) and b"NaN" not in body and b"Inf" not in body
    except (ValueError, RecursionError):
        return False
