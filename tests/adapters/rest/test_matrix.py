"""Role by route, whole: docs/api.md says who may call what, and every role calls everything.

Each route meets things of user-1 in the app demo. Whoever may not reach them leaves them as they were.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.adapters.rest.issuers import service_token, services_issuer, user_token, users_issuer
from tests.adapters.rest.service import DEMO, OTHER, Service, shown
from tests.architecture.trees import ROOT
from tests.shows import shows
from waypost.bootstrap import features
from waypost.domain import api_key
from waypost.domain.ids import CallerId
from waypost.domain.scope import Scope, with_implied
from waypost.entrypoints.rest.answers import spoken_of
from waypost.entrypoints.rest.app import served_routes
from waypost.ports.keys import issued

pytestmark = pytest.mark.asyncio

ROW = re.compile(r"^\| (`[A-Z]+ /[^|]*) \| .* \| (?:`([a-z:-]+)`|–) \| (theirs|anybody|–) \|$", re.MULTILINE)
"""The calls of a row, their scope, and what end users may do."""


class Rule(NamedTuple):
    """A row of the page."""

    scope: Scope | None
    users: str


def documented() -> dict[str, Rule]:
    """Who may call what, as docs/api.md says."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    return {
        call: Rule(Scope(scope) if scope else None, users)
        for calls, scope, users in ROW.findall(page)
        for call in re.findall(r"`([^`]+)`", calls)
    }


def declared() -> dict[str, Rule]:
    """Who may call what, as the routes say."""
    found: dict[str, Rule] = {}
    for route in served_routes(beside=features.routes()):
        access = spoken_of(route).access
        rule = Rule(None, "anybody") if access is None else Rule(access.scope, "theirs" if access.users else "–")
        for method in route.http_methods - {"OPTIONS"}:
            found |= {f"{method} {re.sub(r':str', '', path)}": rule for path in route.paths}
    return found


async def test_the_page_says_what_the_routes_declare() -> None:
    assert documented() == declared()


@shows("S3-44")
async def test_what_asks_nobody_is_signed_or_what_operators_need() -> None:
    """Everything else is under the two prefixes whose every call is authenticated; `/live` looks for a ticket, too."""
    assert {call for call, rule in documented().items() if rule.scope is None} == {
        "GET /health/live",
        "GET /health/ready",
        "GET /p/{app}/{link}",
        "POST /p/{app}/{link}",
        "GET /v/{app}/{link}",
        "POST /v/{app}/{link}",
        "GET /r/{app}/{receipt}",
        "POST /r/{app}/{receipt}",
        "GET /live",
        "GET /sdk/{name}",
        "POST /callbacks/{app}/{channel}/{name}",
        "GET /metrics",
    }
    assert all(call.split()[1].startswith(("/v1/", "/api/")) for call, rule in documented().items() if rule.scope)


class Answers(NamedTuple):
    """How a call is answered to who may make it, to another app (to which it is about its own user-1), and to another
    user of the same.
    """

    mine: int
    other_app: int
    other_user: int | None = None
    path: str = ""
    """What is behind the path of the route."""
    body: Any = None


SUBMISSION = shown()
API_SUBMISSION = {"user_id": "user-1", "title": "Hello", "body": "You"}
DEVICE = {"platform": "android", "token": "token-1"}
SCHEDULE = {"starts": "2027-02-01T09:00", "rule": "FREQ=DAILY", "notification": SUBMISSION}
SERIES = {"steps": [{"name": "one", "notification": {"title": "Hello"}}]}
TEMPLATE = {"channels": {"default": {"title": "Hello"}}}
SOME_ID = "019c1234-5678-7abc-8def-0123456789ab"
CALLS: Mapping[str, Answers] = {
    "POST /v1/notifications": Answers(202, 202, body=SUBMISSION),
    "POST /v1/notifications/batch": Answers(202, 202, body={"notifications": [shown(title="A batch")]}),
    "GET /v1/notifications/{notification_id}": Answers(200, 404, 404),
    "GET /v1/notifications": Answers(200, 200, 404, path="?user_id=user-1"),
    "POST /v1/notifications/{notification_id}/cancel": Answers(200, 404),
    "POST /v1/notifications/{notification_id}/replay": Answers(409, 404),
    "PATCH /v1/notifications/{notification_id}": Answers(409, 404, body={"scheduled_at": "2027-06-01T09:00:00Z"}),
    "POST /v1/explain": Answers(200, 200, body=SUBMISSION),
    "POST /v1/dedup/forget": Answers(200, 200, body=SUBMISSION),
    "POST /v1/bulk": Answers(202, 202, body={"notification": {"title": "Hello"}, "recipients": ["user-1"]}),
    "PUT /v1/bulk/{job_id}/recipients": Answers(409, 404, body=b'{"user_id": "user-1"}'),
    "GET /v1/bulk": Answers(200, 200),
    "GET /v1/bulk/{job_id}": Answers(200, 404),
    "GET /v1/bulk/{job_id}/recipients/{user_id}": Answers(200, 404),
    "POST /v1/bulk/{job_id}/pause": Answers(200, 404),
    "POST /v1/bulk/{job_id}/resume": Answers(200, 404),
    "POST /v1/bulk/{job_id}/cancel": Answers(200, 404),
    "PUT /v1/campaigns/{campaign}": Answers(400, 400, body={"notification": {"title": "to nobody"}}),
    "PUT /v1/campaigns/{campaign}/recipients": Answers(200, 404, body=b'{"user_id": "user-1"}'),
    "GET /v1/campaigns": Answers(200, 200),
    "GET /v1/campaigns/{campaign}": Answers(200, 404),
    "GET /v1/campaigns/{campaign}/forecast": Answers(200, 404),
    "GET /v1/campaigns/{campaign}/results": Answers(409, 404),
    "POST /v1/campaigns/{campaign}/approve": Answers(200, 404),
    "POST /v1/campaigns/{campaign}/schedule": Answers(200, 404, body={"at": "2030-01-31T09:00:00Z"}),
    "POST /v1/campaigns/{campaign}/start": Answers(200, 404),
    "POST /v1/campaigns/{campaign}/pause": Answers(409, 404),
    "POST /v1/campaigns/{campaign}/resume": Answers(409, 404),
    "POST /v1/campaigns/{campaign}/cancel": Answers(200, 404),
    "PUT /v1/schedules/{schedule}": Answers(200, 201, body=SCHEDULE),
    "GET /v1/schedules": Answers(200, 200),
    "GET /v1/schedules/{schedule}": Answers(200, 404),
    "GET /v1/schedules/{schedule}/occurrences": Answers(200, 404),
    "POST /v1/schedules/{schedule}/pause": Answers(200, 404),
    "POST /v1/schedules/{schedule}/resume": Answers(200, 404),
    "DELETE /v1/schedules/{schedule}/occurrences/{occurrence}": Answers(200, 404),
    "PATCH /v1/schedules/{schedule}/occurrences/{occurrence}": Answers(200, 404, body={"to": "2027-02-05T09:00"}),
    "DELETE /v1/schedules/{schedule}": Answers(204, 204),  # it has put one of that name
    "PUT /v1/series/{series}": Answers(200, 201, body=SERIES),
    "GET /v1/series": Answers(200, 200),
    "GET /v1/series/{series}": Answers(200, 404),
    "PUT /v1/series/{series}/members/{user_id}": Answers(200, 404),
    "GET /v1/series/{series}/members": Answers(200, 404),
    "GET /v1/series/{series}/members/{user_id}": Answers(200, 404),
    "POST /v1/series/{series}/members/{user_id}/exit": Answers(200, 404),
    "DELETE /v1/series/{series}": Answers(204, 204),  # likewise
    "PUT /v1/users/{user_id}/bulk-opt-out": Answers(204, 204, 404),
    "GET /v1/users/{user_id}/bulk-opt-out": Answers(200, 200, 404),
    "DELETE /v1/users/{user_id}/bulk-opt-out": Answers(204, 204, 404),
    "GET /v1/users/{user_id}/topics": Answers(200, 200, 404),
    "PUT /v1/users/{user_id}/topics/{topic}": Answers(204, 404, 404),
    "DELETE /v1/users/{user_id}/topics/{topic}": Answers(204, 404, 404),
    "PUT /v1/users/{user_id}": Answers(200, 201, body={"locale": "de"}),
    "PATCH /v1/users/{user_id}": Answers(200, 200, body={"locale": "de"}),
    "GET /v1/users/{user_id}": Answers(200, 200),
    "POST /v1/users": Answers(200, 200, body=b'{"user_id": "user-1"}'),
    "GET /v1/segments": Answers(200, 200),
    "GET /v1/segments/{segment}": Answers(200, 404),
    "PUT /v1/segments/{segment}": Answers(200, 201, body={"filter": {"topic": "news"}}),
    "DELETE /v1/segments/{segment}": Answers(204, 204),
    "POST /v1/segments/preview": Answers(200, 200, body={"filter": {"topic": "news"}}),
    "GET /v1/topics": Answers(200, 200),
    "GET /v1/topics/{topic}": Answers(200, 404),
    "PUT /v1/topics/{topic}": Answers(200, 201, body={"open": True}),
    "DELETE /v1/topics/{topic}": Answers(204, 204),
    "POST /v1/topics/{topic}/members": Answers(204, 404, body={"add": ["user-1"]}),
    "GET /v1/topics/{topic}/members": Answers(200, 404),
    "GET /v1/users/{user_id}/feed": Answers(200, 200, 404),
    "GET /v1/users/{user_id}/feed/counts": Answers(200, 200, 404),
    "POST /v1/users/{user_id}/feed/marks": Answers(200, 200, 404, body={"mark": "seen", "until": SOME_ID}),
    "POST /v1/users/{user_id}/live-tickets": Answers(201, 201, 404),
    "GET /v1/dead": Answers(200, 200),
    "POST /v1/dead/replay": Answers(200, 200, body={"filter": {}}),
    "PUT /v1/devices/{user_id}/{device_id}": Answers(200, 201, 404, body=DEVICE),
    "GET /v1/devices/{user_id}": Answers(200, 200, 404),
    "DELETE /v1/devices/{user_id}/{device_id}": Answers(204, 204, 404),
    "GET /v1/users/{user_id}/preferences": Answers(200, 200, 404),
    "GET /v1/users/{user_id}/preferences/link": Answers(404, 404, 404),
    "PATCH /v1/users/{user_id}/preferences": Answers(200, 200, 404, body={"enabled": False}),
    "PUT /v1/users/{user_id}/contacts/{kind}": Answers(400, 400, 404, body={"address": "no mailbox"}),
    "GET /v1/users/{user_id}/contacts": Answers(200, 200, 404),
    "DELETE /v1/users/{user_id}/contacts/{kind}": Answers(404, 404, 404),
    "POST /v1/users/{user_id}/contacts/{kind}/verify": Answers(404, 404, 404, body={"code": "123456"}),
    "POST /v1/users/{user_id}/contacts/{kind}/send-code": Answers(404, 404, 404),
    "DELETE /v1/users/{user_id}": Answers(202, 202),
    "GET /v1/audit": Answers(200, 200),
    "GET /v1/balance": Answers(200, 200),
    "GET /v1/analytics/rates": Answers(200, 200),
    "GET /v1/analytics/funnel": Answers(200, 200),
    "GET /v1/analytics/events": Answers(200, 200),
    "GET /v1/users/{user_id}/best-hour": Answers(200, 200),
    "POST /v1/events": Answers(400, 400, 400, body={"events": []}),
    "GET /v1/alerts": Answers(200, 200),
    "POST /v1/alerts/{notification_id}/retry": Answers(404, 404),
    "POST /v1/alerts/{notification_id}/resolve": Answers(404, 404),
    "GET /v1/outbox": Answers(200, 200),
    "GET /v1/webhooks/events": Answers(200, 200, path=f"?endpoint={'0' * 64}"),
    "GET /v1/webhooks/sources": Answers(200, 200),
    "POST /v1/webhooks/replay": Answers(200, 200, body={"since": "2026-01-31T09:00:00Z", "endpoint": "0" * 64}),
    "POST /v1/keys": Answers(201, 201, body={"caller": "new", "scopes": ["read"]}),
    "GET /v1/keys": Answers(200, 200),
    "POST /v1/keys/{prefix}/rotate": Answers(201, 404),
    "DELETE /v1/keys/{prefix}": Answers(204, 404),
    "GET /v1/templates": Answers(200, 200),
    "GET /v1/templates/{name}": Answers(200, 404),
    "GET /v1/templates/{name}/versions": Answers(200, 404),
    "POST /v1/templates/{name}/publish": Answers(200, 404, body={}),
    "POST /v1/templates/{name}/preview": Answers(200, 404, body={}),
    "DELETE /v1/templates/{name}": Answers(204, 404),
    "PUT /v1/templates/{name}": Answers(200, 200, body=TEMPLATE),
    "POST /v1/receipts": Answers(200, 200, 200, body={"receipts": [{"event": "opened", "token": "x" * 38}]}),
    "GET /v1/notifications/{notification_id}/events": Answers(200, 404, 404),
    "POST /callbacks/{app}/{channel}/{name}": Answers(404, 404, 404),
    "GET /v/{app}/{link}": Answers(404, 404, 404),
    "POST /v/{app}/{link}": Answers(404, 404, 404),
    "GET /p/{app}/{link}": Answers(404, 404, 404),
    "POST /p/{app}/{link}": Answers(404, 404, 404),
    "GET /r/{app}/{receipt}": Answers(404, 404, 404),
    "POST /r/{app}/{receipt}": Answers(404, 404, 404),
    "GET /live": Answers(400, 400, 400),  # it asks for neither a web socket nor an event stream
    "GET /sdk/{name}": Answers(404, 404, 404),
    "GET /health/live": Answers(200, 200, 200),
    "GET /health/ready": Answers(200, 200, 200),
    "GET /metrics": Answers(200, 200, 200),
    "POST /v1/notify": Answers(202, 202, body=shown(title="Notify")),
    "POST /api/notifications": Answers(201, 201, 403, body=API_SUBMISSION),
    "GET /api/notifications": Answers(200, 200, 200),
    "GET /api/notifications/{notification_id}": Answers(200, 404, 404),
    "PATCH /api/notifications/{notification_id}/read": Answers(200, 404, 404),
    "PATCH /api/notifications/{notification_id}/unread": Answers(200, 404, 404),
    "DELETE /api/notifications/{notification_id}": Answers(200, 404, 404),
    "POST /api/tokens": Answers(201, 201, 201, body=DEVICE | {"token": "token-2", "user_id": "user-1"}),
    "DELETE /api/tokens/{token}": Answers(200, 200, 404),
}


class Role(NamedTuple):
    """Somebody who calls."""

    scopes: frozenset[Scope] = frozenset()
    user: str | None = None
    app: str = DEMO
    is_service: bool = False

    @property
    def reaches_nothing(self) -> bool:
        """Whether nothing that user-1 of the app demo has is theirs."""
        return self.app != DEMO or self.user == "user-2"

    def expected(self, call: str, rule: Rule) -> int:
        """How the page says that they are answered."""
        answers, acts_for = CALLS[call], " /api/" in call and self.user is None
        if rule.scope is None:
            return answers.mine
        if not self.scopes:
            return 401
        if rule.scope not in self.scopes or (acts_for and Scope.SEND_ANY_USER not in self.scopes):
            return 403
        if self.user is not None and rule.users != "theirs":
            return 403
        if self.user == "user-2":
            assert answers.other_user is not None
            return answers.other_user
        return answers.mine if self.app == DEMO else answers.other_app


DEVICES_AND_READ = frozenset({Scope.DEVICES, Scope.READ})
ROLES: Mapping[str, Role] = {
    "nobody": Role(),
    **{f"a key with {scope}": Role(with_implied({scope})) for scope in Scope},
    "a key with all": Role(frozenset(Scope)),
    "a key of another app": Role(frozenset(Scope), app=OTHER),
    "a service with read": Role(frozenset({Scope.READ}), is_service=True),
    "a service with all": Role(frozenset(Scope), is_service=True),
    "the user": Role(DEVICES_AND_READ, "user-1"),
    "the user, with all scopes": Role(frozenset(Scope), "user-1"),
    "another user": Role(DEVICES_AND_READ, "user-2"),
    "another user, who may send": Role(DEVICES_AND_READ | {Scope.SEND}, "user-2"),
    "a user of another app": Role(frozenset(Scope), "user-1", OTHER),
}


class Bench:
    """A service, one role's credential, and an administrator who makes things and looks at them."""

    def __init__(self, folder: Path) -> None:
        issuers = [users_issuer(folder), users_issuer(folder, "other"), services_issuer()]
        self.service = Service(issuers=issuers)
        self._made = 0

    async def credential(self, role: Role) -> str | None:
        """What the role presents."""
        if not role.scopes:
            return None
        if role.user is not None:
            return user_token(role.user, *role.scopes, aud=f"waypost-{role.app}")
        if role.is_service:
            return service_token(*role.scopes)
        made = self._key()
        scopes = role.scopes if Scope.SEND_ANY_USER in role.scopes else role.scopes - {Scope.SEND} or role.scopes
        app = DEMO if role.app == DEMO else OTHER
        await self.service.keys.add(issued(made, app, CallerId("role"), self.service.clock.now(), scopes))
        return made.text

    async def things(self, admin: httpx.AsyncClient) -> dict[str, str]:
        """New things of user-1, by the names that paths have for them."""
        self._made += 1
        made = self._key()
        now = self.service.clock.advance(10)  # no two jobs have the same time
        await self.service.keys.add(issued(made, DEMO, CallerId("thing"), now))
        one = await admin.post("/v1/notifications", json=shown(data={"n": self._made}))
        job = await admin.post("/v1/bulk", json={"notification": {"title": "Hi"}, "recipients": ["user-1"]})
        draft = {"notification": {"title": "Hi"}, "recipients": ["user-1"]}
        await admin.put(f"/v1/campaigns/spring-{self._made}", json=draft)
        await admin.put("/v1/devices/user-1/phone", json=DEVICE)
        await admin.put("/v1/users/user-1/bulk-opt-out")
        await admin.put("/v1/templates/default", json=TEMPLATE)
        await admin.put("/v1/users/user-1", json={"locale": "de-CH"})
        name = f"n{self._made}"
        await admin.put(f"/v1/schedules/{name}", json=SCHEDULE)
        await admin.put(f"/v1/series/{name}", json=SERIES)
        await admin.put(f"/v1/series/{name}/members/user-1")
        await admin.put("/v1/users/user-1", json={})
        await admin.put("/v1/topics/news", json={"open": True})
        await admin.put("/v1/users/user-1/topics/news")
        await admin.put("/v1/segments/readers", json={"filter": {"topic": "news"}})
        return {
            "notification_id": one.json()["id"],
            "job_id": job.json()["id"],
            "campaign": f"spring-{self._made}",
            "user_id": "user-1",
            "device_id": "phone",
            "kind": "email",
            "app": "demo",
            "receipt": "x" * 38,
            "link": "x" * 43,
            "channel": "sms",
            "name": "default",
            "token": "token-1",
            "prefix": made.prefix,
            "schedule": name,
            "occurrence": "2027-02-03T09:00",
            "series": name,
            "topic": "news",
            "segment": "readers",
        }

    async def state(self, admin: httpx.AsyncClient, things: Mapping[str, str]) -> list[Any]:
        """All that can be seen of them."""
        paths = [
            f"/v1/notifications/{things['notification_id']}",
            f"/v1/bulk/{things['job_id']}",
            f"/v1/campaigns/{things['campaign']}",
            "/v1/devices/user-1?inactive=true",
            "/v1/users/user-1/bulk-opt-out",
            "/v1/keys",
            "/v1/users/user-1/topics",
            "/v1/notifications?user_id=user-1&limit=500",
        ]
        return [(await admin.get(path)).json() for path in paths]

    def _key(self) -> api_key.NewKey:
        self._made += 1
        return api_key.make(self._made.to_bytes(5, "big") + bytes(32))


async def test_each_call_is_in_the_matrix() -> None:
    assert CALLS.keys() == documented().keys()


@shows("S3-21", "S3-30", "S3-43", "S3-44")
@pytest.mark.parametrize("name", ROLES)
async def test_a_role_is_answered_as_the_page_says(name: str, tmp_path: Path) -> None:
    role, bench = ROLES[name], Bench(tmp_path)
    await bench.service.add_keys()
    async with bench.service.client() as admin, bench.service.client() as client:
        del client.headers["authorization"]
        if (credential := await bench.credential(role)) is not None:
            client.headers["authorization"] = f"Bearer {credential}"
        expected = {call: role.expected(call, rule) for call, rule in documented().items()}
        theirs = {call for call in expected if role.reaches_nothing or expected[call] in (401, 403, 404)}
        things = await bench.things(admin)
        before = await bench.state(admin, things)
        found = {call: await _called(client, call, things, role) for call in expected if call in theirs}
        assert await bench.state(admin, things) == before
        for call in expected.keys() - theirs:
            found[call] = await _called(client, call, await bench.things(admin), role)
    assert {call: answer.status_code for call, answer in found.items()} == expected
    assert credential is None or not any(credential in answer.text for answer in found.values())


async def _called(client: httpx.AsyncClient, call: str, things: Mapping[str, str], role: Role) -> httpx.Response:
    method, path = call.format(**things).split()
    headers = {"x-waypost-user": "user-1"} if path.startswith("/api/") and role.user is None else {}
    body = CALLS[call].body
    if isinstance(body, bytes):
        headers["content-type"] = "application/x-ndjson"
        return await client.request(method, path, headers=headers, content=body)
    return await client.request(method, path + CALLS[call].path, headers=headers, json=body)
