"""The drop-in delivers as the notifications service did: what goes to FCM, what the log says, what is acknowledged."""

from __future__ import annotations

import pytest

from tests.adapters.stream.conftest import Serving, sent
from tests.adapters.stream.owner import SILENT_MS, Owner, android_token, until
from tests.shows import shows
from waypost.lab import Lab
from waypost.lab.faults import parse_rules

pytestmark = pytest.mark.asyncio


@shows("S0-04", "S0-07", "S0-08", "S0-09", "S0-10", "S0-11", "S0-12", "S0-13")
async def test_a_job_goes_to_every_device_in_the_services_form(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirements S0-06 to S0-13, and S0-04."""
    tokens = {owner.device("ann", platform) for platform in ("android", "ios", "web")}
    owner.device("ben")
    job = {"title": "Packed", "body": "On its way", "channel": "orders", "badge": 3}
    async with serving():
        owner.add(userId="ann", **job, data={"order": 17, "express": True, "box": {"w": 1}})
        await until(lambda: owner.statuses() == {"ann": "sent"})
        await until(lambda: owner.pending() == {})
    messages = sent(lab)
    assert {message.pop("token") for message in messages} == tokens
    expected = {
        "notification": {"title": "Packed", "body": "On its way"},
        "data": {"order": "17", "express": "true", "box": '{"w":1}', "channel": "orders"},
        "android": {"priority": "HIGH", "notification": {"channel_id": "orders"}},
        "apns": {"headers": {"apns-priority": "10"}, "payload": {"aps": {"mutable-content": 1, "badge": 3}}},
        "webpush": {"headers": {"Urgency": "high"}},
    }
    assert messages == [expected] * 3


@shows("S0-02", "S0-03", "S0-09", "S0-12")
async def test_both_forms_make_the_same_request(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirements S0-02 and S0-03; without a badge there is none (S0-12)."""
    owner.device("ann")
    async with serving():
        owner.add(userId="ann", title="Packed", body="Soon", channel="orders", data={"a": 1}, order="17")
        owner.add_payload(userId="ann", title="Packed", body="Soon", channel="orders", data={"a": 1, "order": 17})
        await until(lambda: len(sent(lab)) == 2)
        await until(lambda: owner.pending() == {})
    one, other = sent(lab)
    assert one == other
    assert one["data"] == {"a": "1", "order": "17", "channel": "orders"}
    assert one["apns"]["payload"] == {"aps": {"mutable-content": 1}}


async def test_what_was_never_meant_to_be_harmless_arrives_as_text(owner: Owner, lab: Lab, serving: Serving) -> None:
    nasty = "'); DROP TABLE device_token; -- \u202e<script>${jndi:ldap://x}%00\x01"
    owner.device(nasty)
    async with serving():
        owner.add(userId=nasty, title=nasty, channel=nasty[:40], data={nasty: nasty})
        await until(lambda: owner.statuses() == {nasty: "sent"})
    (message,) = sent(lab)
    assert message["data"] == {nasty: nasty, "channel": nasty[:40]}
    assert message["notification"] == {"title": nasty}


@shows("S0-05")
async def test_the_row_is_pending_while_fcm_stands_still(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirement S0-05; a job that is being worked on is not taken over, however long it takes."""
    owner.device("ann")
    await lab.script(parse_rules([{"where": "fcm", "do": {"latency_ms": 5 * SILENT_MS}}]))
    async with serving():
        entry = owner.add(userId="ann", title="Hello")
        await until(lambda: owner.statuses() == {"ann": "pending"})
        await until(lambda: owner.statuses() == {"ann": "sent"})
    assert len(sent(lab)) == 1
    (row,) = owner.log()
    assert (row["job_id"], row["tokens"], row["sent"]) == (entry, 1, 1)


@shows("S0-19", "S0-20", "S0-21", "S0-26")
async def test_each_end_has_its_status(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirements S0-19, S0-20, S0-21 and S0-26: also what failed for good is acknowledged."""
    dead = {owner.device("dan"), owner.device("pat")}
    owner.device("pat")
    owner.device("sue")
    for token in dead:
        lab.tokens.deaths[token] = 0
    async with serving() as log:
        for user in ("dan", "pat", "sue", "nobody"):
            owner.add(userId=user, title="Hello")
        ends = {"dan": "failed", "pat": "partial", "sue": "sent", "nobody": "no_tokens"}
        await until(lambda: owner.statuses() == ends)
        await until(lambda: owner.pending() == {})
        await until(lambda: owner.tokens().isdisjoint(dead))
    assert len(owner.tokens()) == 2
    assert log.of("notifications.max_retries") == []


@shows("S0-04")
async def test_a_log_of_the_owners_making_is_used_as_it_is(owner_of_log: Owner, lab: Lab, serving: Serving) -> None:
    """Ids without a default, an enum, names in camel case; nothing of it is changed, but for the rows."""
    before = owner_of_log.definitions()
    owner_of_log.device("ann")
    async with serving():
        owner_of_log.add(userId="ann", title="Hello", channel="orders", data={"order": 17})
        await until(lambda: owner_of_log.statuses() == {"ann": "sent"})
    (row,) = owner_of_log.log()
    shown = {name: row[name] for name in ("channel", "title", "payload", "note")}
    assert shown == {"channel": "orders", "title": "Hello", "payload": {"order": 17}, "note": "untouched"}
    assert owner_of_log.definitions() == before


async def test_other_names_are_told_by_the_environment(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Of stream, group, tables and columns; the user's column may be a number."""
    owner.sql('CREATE TABLE "Push" (nr serial PRIMARY KEY, "owner" integer, secret text)')
    token = android_token()
    owner.sql('INSERT INTO "Push" ("owner", secret) VALUES (17, %s)', token)
    names = {
        "STREAM_NAME": "other.jobs",
        "CONSUMER_GROUP": "others",
        "TOKEN_TABLE": 'public."Push"',
        "TOKEN_COLUMNS": "id=nr, user=owner, token=secret",
        "LOG_TABLE": "audit.pushes",
    }
    async with serving(**names):
        owner.redis.xadd("other.jobs", {"userId": 17, "title": "Hello"})
        owner.redis.xadd("other.jobs", {"userId": "no number", "title": "Hello"})
        rows = "SELECT user_id, status FROM audit.pushes ORDER BY 1"
        ends = [{"user_id": "17", "status": "sent"}, {"user_id": "no number", "status": "no_tokens"}]
        await until(lambda: owner.sql(rows) == ends)
    assert [message["token"] for message in sent(lab)] == [token]
