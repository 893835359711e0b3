"""What follows from FCM's refusals, and from jobs that cannot be read."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from tests.adapters.stream.conftest import Serving, sent
from tests.adapters.stream.owner import Owner, until
from tests.shows import shows
from waypost.bootstrap import drop_in
from waypost.domain.breaker import BreakerRules
from waypost.domain.retry import POLICIES
from waypost.lab import Lab
from waypost.lab.faults import parse_rules

pytestmark = pytest.mark.asyncio


def refusing(token: str, status: int, code: str, **match: Any) -> dict[str, Any]:
    """FCM refuses *token* with this code."""
    answer = {"status": status, "reason": code}
    return {"where": "fcm", "match": {"token": token} | match, "do": {"answer": answer}}


@shows("S0-14", "S0-16")
@pytest.mark.parametrize(
    ("status", "code"),
    [(404, "UNREGISTERED"), (400, "INVALID_ARGUMENT"), (403, "SENDER_ID_MISMATCH")],
)
async def test_a_dead_token_is_removed(owner: Owner, lab: Lab, serving: Serving, status: int, code: str) -> None:
    """Requirements S0-14 and S0-16: by its id, and no other."""
    dead, alive = owner.device("ann"), owner.device("ann")
    await lab.script(parse_rules([refusing(dead, status, code)]))
    async with serving():
        owner.add(userId="ann", title="Hello")
        await until(lambda: owner.statuses() == {"ann": "partial"} and owner.pending() == {})
    assert owner.tokens() == {alive}


@shows("S0-16")
async def test_a_token_that_was_replaced_meanwhile_stays(owner: Owner, lab: Lab, serving: Serving) -> None:
    dead = owner.device("ann")
    await lab.script(parse_rules([{"where": "fcm", "do": {"latency_ms": 500}}, refusing(dead, 404, "UNREGISTERED")]))
    async with serving():
        owner.add(userId="ann", title="Hello")
        await until(lambda: lab.faults.met()[0])
        owner.sql("UPDATE device_token SET token = 'newer'")
        await until(lambda: owner.statuses() == {"ann": "failed"} and owner.pending() == {})
    assert owner.tokens() == {"newer"}


@shows("S0-15", "S0-18", "S0-22")
@pytest.mark.parametrize("status_and_code", [(503, "UNAVAILABLE"), (500, "INTERNAL"), (418, "NEVER_HEARD_OF")])
async def test_what_may_pass_is_sent_again_and_siblings_are_not(
    owner: Owner, lab: Lab, serving: Serving, status_and_code: tuple[int, str]
) -> None:
    """Requirements S0-15 and S0-18: the entry stays pending until it is left alone for long enough."""
    weary, sound = owner.device("ann"), owner.device("ann")
    await lab.script(parse_rules([refusing(weary, *status_and_code, times=2)]))
    async with serving():
        entry = owner.add(userId="ann", title="Hello")
        await until(lambda: owner.pending().get(entry, 0) > 1)
        await until(lambda: owner.statuses() == {"ann": "sent"} and owner.pending() == {})
    tokens = [message["token"] for message in sent(lab)]
    assert (tokens.count(weary), tokens.count(sound)) == (3, 1)


@shows("S0-21", "S0-24", "S0-25", "S0-33")
async def test_the_last_delivery_is_not_sent(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirements S0-21, S0-24 and S0-25; the row says what had been sent until then."""
    weary, sound = owner.device("ann"), owner.device("ann")
    await lab.script(parse_rules([refusing(weary, 503, "UNAVAILABLE")]))
    async with serving(MAX_DELIVERY_COUNT="3") as log:
        entry = owner.add(userId="ann", title="Hello")
        await until(lambda: owner.statuses() == {"ann": "partial"} and owner.pending() == {})
    tokens = [message["token"] for message in sent(lab)]
    assert (tokens.count(weary), tokens.count(sound)) == (2, 1)
    assert log.of("notifications.max_retries") == [{"job_id": entry, "user_id": "ann", "deliveries": 3}]


@shows("S0-24")
async def test_an_entry_that_others_delivered_often_enough_is_given_up(
    owner: Owner, lab: Lab, serving: Serving
) -> None:
    """As the service before left it behind: no request, no row."""
    owner.device("ann")
    entry = owner.add(userId="ann", title="Hello")
    owner.redis.xgroup_create("stream.notifications.jobs", "notifications-service", 0)
    owner.redis.xreadgroup("notifications-service", "old", {"stream.notifications.jobs": ">"})
    owner.redis.xclaim("stream.notifications.jobs", "notifications-service", "old", 0, [entry], retrycount=4)
    async with serving() as log:
        await until(lambda: owner.pending() == {})
    assert sent(lab) == []
    assert owner.log() == []
    assert [each["deliveries"] for each in log.of("notifications.max_retries")] == [5]


async def test_a_quota_is_waited_for_and_spends_no_delivery(
    owner: Owner, lab: Lab, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FCM says when; the entry stays pending, in hand."""
    policy = POLICIES["s0_stream"]
    soon = structs.replace(policy, delays_ms=(1,) * len(policy.delays_ms))
    monkeypatch.setitem(POLICIES, "s0_stream", soon)  # else its 30 s are waited for, whatever FCM says
    token = owner.device("ann")
    rule = refusing(token, 429, "QUOTA_EXCEEDED", times=1)
    rule["do"]["answer"]["retry_after"] = 1
    await lab.script(parse_rules([rule]))
    async with serving():
        owner.add(userId="ann", title="Hello")
        await until(lambda: owner.statuses() == {"ann": "sent"} and owner.pending() == {})
    first, second = [record.at for record in lab.records.since(0) if record.gateway == "fcm"]
    assert second - first >= 1


@pytest.mark.long
async def test_an_outage_spends_no_deliveries_of_whoever_probes(owner: Owner, lab: Lab, serving: Serving) -> None:
    """One delivery met the outage, the next was the probe; that one waits in hand until FCM is back."""
    for _ in range(25):
        owner.device("ann")
    await lab.script(parse_rules([{"where": "fcm", "do": {"answer": {"status": 503, "reason": "UNAVAILABLE"}}}]))
    async with serving(MAX_DELIVERY_COUNT="3") as log:
        entry = owner.add(userId="ann", title="Hello")
        await until(lambda: len(log.of("breaker.probing")) >= 3)
        assert owner.pending()[entry] < 3
        await lab.script([])
        await until(lambda: owner.statuses() == {"ann": "sent"} and owner.pending() == {})
    assert log.of("notifications.max_retries") == []


@shows("S0-17", "S0-33")
async def test_apns_credentials_are_an_operators_business(owner: Owner, lab: Lab, serving: Serving) -> None:
    """Requirement S0-17: an alert for the job, once however many devices it has; the others are sent to."""
    ios, more, android = (owner.device("ann", platform) for platform in ("ios", "ios", "android"))
    await lab.script(parse_rules([refusing(each, 401, "THIRD_PARTY_AUTH_ERROR") for each in (ios, more)]))
    async with serving() as log:
        entry = owner.add(userId="ann", title="Hello")
        await until(lambda: owner.statuses() == {"ann": "partial"} and owner.pending() == {})
    alerts = {(each["job_id"], each["code"]) for each in log.of("notifications.fcm_fatal")}
    assert alerts == {(entry, "THIRD_PARTY_AUTH_ERROR")}
    assert owner.tokens() == {ios, more, android}


@shows("S0-17")
async def test_jobs_outlast_a_refused_credential(
    owner: Owner, lab: Lab, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requirement S0-17; FCM's own credential: nothing is lost, and it goes out once it is accepted again."""
    monkeypatch.setattr(drop_in, "BreakerRules", partial(BreakerRules, probe_after_s=0.2))
    owner.device("ann")
    await lab.script(parse_rules([{"where": "oauth", "do": {"answer": {"status": 400, "reason": "invalid_grant"}}}]))
    async with serving() as log:
        entry = owner.add(userId="ann", title="Hello")
        await until(lambda: log.of("notifications.fcm_fatal"))
        assert log.of("notifications.fcm_fatal")[0]["job_id"] == entry
        assert owner.pending() == {entry: 1}
        await lab.script([])
        await until(lambda: owner.statuses() == {"ann": "sent"} and owner.pending() == {})


async def test_what_cannot_be_read_is_acknowledged_and_said(owner: Owner, lab: Lab, serving: Serving) -> None:
    """And neither its text nor its tokens; what FCM would refuse for its form costs nobody their token."""
    token = owner.device("ann")
    async with serving() as log:
        owner.redis.xadd("stream.notifications.jobs", {"payload": '{"userId": "secret'})
        owner.redis.xadd("stream.notifications.jobs", {"title": "secret"})
        owner.redis.xadd("stream.notifications.jobs", {b"\xff\xfe": b"secret"})
        owner.add(userId="ann", title="Hello", data={"google.secret": "x"})
        owner.add(userId="ann", title="Hello", body="x" * 5_000)
        await until(lambda: owner.statuses() == {"ann": "failed"})
        await until(lambda: owner.pending() == {} and owner.unread() == 0)
    assert sent(lab) == []
    assert owner.tokens() == {token}
    unreadable = [str(each["why"]) for each in log.of("notifications.unreadable")]
    assert len(unreadable) == 4
    assert "secret" not in json.dumps(unreadable).replace("data.google.secret", "")
