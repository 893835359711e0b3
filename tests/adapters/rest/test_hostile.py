"""Requests that mean no good: each gets a problem, none gets through, none costs memory or time without bound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from tests.adapters.rest.service import Service, served, shown
from tests.shows import shows
from waypost.domain import api_key
from waypost.domain.ids import AppId, CallerId
from waypost.entrypoints.rest.settings import RestSettings
from waypost.ports.keys import ApiKey
from waypost.telemetry import Event, Metric

pytestmark = pytest.mark.asyncio

PATHS = ["/v1/notifications", "/v1/notifications/batch", "/v1/bulk", "/v1/explain", "/v1/dead/replay"]
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"user_id": "a"} x', None),
        (b'{"user_id": "\xff"}', None),
        (b'\xef\xbb\xbf{"user_id": "a"}', "invalid_json"),
        (b'{"data": ' + b'{"a":' * 50_000, None),
        (b"[" * 100_000, "invalid_request"),
        (b'{"user_id": "a", "data": {"a": NaN}}', None),
        (b'{"user_id": "a", "data": {"a": "\\ud800"}}', None),
        (b'{"user_id": "a", "data": {"a": 1e999}}', None),
        (b'{"user_id": "a", "title": "b", "data": {"a": %s}}' % (b"9" * 4_000), None),
        (b'{"notifications": ' + b"[" * 50_000, None),
        (b"null", "invalid_request"),
        (b"[]", "invalid_request"),
        (b'{"unknown": 1}', "invalid_request"),
    ],
)
async def test_a_body_that_makes_no_sense_is_400(path: str, body: bytes, code: str | None) -> None:
    """The answer names the place, never the content."""
    async with served() as (service, client):
        answer = await client.post(path, content=body, headers=JSON)
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
        assert code in (None, answer.json()["code"])
        assert not service.store.rows
        assert not service.telemetry.events


@pytest.mark.parametrize("path", ["//v1/keys", "/v1//keys", "/v1/keys/", "//api/tokens", "///metrics", "/docs//"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_path_with_an_empty_part_leads_nowhere(method: str, path: str) -> None:
    """A router that takes slashes together would find a route behind what was let in, or limited, by its true path."""
    async with served() as (service, client):
        url = client.base_url.copy_with(raw_path=path.encode())
        answer = await client.request(method, url)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert not service.telemetry.events


async def test_what_was_sent_is_not_quoted() -> None:
    """A problem may end up in a caller's log."""
    async with served() as (_, client):
        answers = [
            await client.post("/v1/notifications", json={"user_id": "a", "kind": "hush-hush"}),
            await client.get("/v1/notifications", params={"status": "hush-hush"}),
            await client.post("/v1/notifications", content=b'{"user_id": "hush-hush', headers=JSON),
            await client.put("/v1/devices/u/d", json={"platform": "ios", "token": "hush-hush"}),
        ]
        assert [each.status_code for each in answers] == [400] * 4
        assert not any("hush" in each.text for each in answers)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)  # fmt: skip - a line each
async def test_a_body_of_another_type_is_415(headers: dict[str, str]) -> None:
    """JSON in UTF-8 alone, uncompressed."""
    async with served() as (_, client):
        answer = await client.post("/v1/notifications", content=json.dumps(shown()), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(("path", "limit"), [("/v1/notifications", 2_000), ("/v1/notifications/batch", 4_000)])
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_over_the_limit_is_413_and_is_not_kept(path: str, limit: int, chunked: bool) -> None:
    """By its declared length before a byte of it is read, in chunks as soon as they are too many."""
    settings = RestSettings(body_limit_bytes=2_000, batch_limit_bytes=4_000)
    read = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1_000):
            read += 1_000
            yield b" " * 1_000

    async with served(settings) as (_, client):
        body: Any = chunks() if chunked else b" " * (limit + 1)
        answer = await client.post(path, content=body, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert f"at most {limit}" in answer.json()["detail"]
        assert answer.headers["connection"] == "close"


async def asked(service: Service, messages: Iterable[dict], **scope: Any) -> list[dict]:
    """What the application sends to a client that sends *messages* and then nothing more, ever."""
    coming = iter(messages)
    sent: list[dict] = []

    async def receive() -> dict:
        for message in coming:
            return message
        await asyncio.get_running_loop().create_future()
        raise AssertionError  # it never comes

    async def send(message: dict) -> None:
        sent.append(message)

    base = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/notifications",
        "raw_path": b"/v1/notifications",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"authorization", f"Bearer {service.made.text}".encode()), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
    }  # fmt: skip - an ASGI scope
    await service.app({**base, **scope}, receive, send)  # type: ignore[arg-type] # a scope as a server makes it
    return sent


def problem_in(sent: list[dict]) -> tuple[int, str]:
    """Status and code of the answer."""
    return sent[0]["status"], json.loads(sent[1]["body"])["code"]


async def test_a_body_that_does_not_come_is_408() -> None:
    """A client has a set time for the whole of it."""
    async with served(RestSettings(body_timeout_s=0.01, linger_s=0.01)) as (service, _):
        part = {"type": "http.request", "body": b'{"user_id":', "more_body": True}
        assert problem_in(await asked(service, [part])) == (408, "request_timeout")


async def test_a_body_that_was_read_whole_is_not_waited_for() -> None:
    """However it is refused then: the answer ends at once, and the connection stays."""
    async with served(RestSettings(linger_s=3_600.0)) as (service, _):
        key = (b"authorization", f"Bearer {service.made.text}".encode())
        sent = await asked(service, [{"type": "http.request", "body": b"a=b"}], headers=[key])
        assert problem_in(sent) == (415, "unsupported_media_type")
        assert b"connection" not in dict(sent[0]["headers"])


async def test_a_client_that_hangs_up_gets_nothing() -> None:
    """Half a body is no request."""
    async with served() as (service, _):
        messages: list[dict] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
        assert await asked(service, messages) == []
        assert not service.telemetry.events


async def test_an_upload_that_is_cut_off_starts_nothing() -> None:
    """Half a line is nobody, and the job waits for its list again."""
    async with served() as (service, client):
        made = await client.post("/v1/bulk", json={"notification": {"title": "Hi"}, "upload": True})
        path, ndjson = f"/v1/bulk/{made.json()['id']}/recipients", "application/x-ndjson"
        part = {"type": "http.request", "body": b'{"user_id": "ann"}\n{"user_id": "b', "more_body": True}
        headers = [(b"authorization", f"Bearer {service.made.text}".encode()), (b"content-type", ndjson.encode())]
        where: dict[str, Any] = {"method": "PUT", "path": path, "raw_path": path.encode(), "headers": headers}
        assert await asked(service, [part, {"type": "http.disconnect"}], **where) == []
        assert (await client.get(path.removesuffix("/recipients"))).json()["state"] == "uploading"
        again = await client.put(path, content=b'{"user_id": "bob"}', headers={"content-type": ndjson})
        assert (again.status_code, again.json()["state"], again.json()["uploaded"]) == (202, "running", 1)


async def test_all_bodies_together_are_bounded() -> None:
    """Past the sum, 429; what was held is let go."""
    settings = RestSettings(bodies_limit_bytes=1_000, linger_s=0.01)
    async with served(settings) as (service, client):
        part = {"type": "http.request", "body": b" " * 1_001, "more_body": True}
        assert problem_in(await asked(service, [part])) == (429, "backlog_full")
        assert (await client.post("/v1/notifications", json=shown())).status_code == 202


@pytest.mark.parametrize("headers", [[(b"x", b"y")] * 200, [(b"x", b"y" * 40_000)]])
async def test_a_head_over_the_limits_is_431(headers: list[tuple[bytes, bytes]]) -> None:
    """In number or in size."""
    async with served(RestSettings(linger_s=0.01)) as (service, _):
        assert problem_in(await asked(service, [], headers=headers)) == (431, "headers_too_large")


@pytest.mark.parametrize("path", ["/v2", "/v1", "/v1/notifications/a/b/c", "/docs/../x", "/%00", "/v1/%ff"])
async def test_a_route_that_is_not_there_is_404(path: str) -> None:
    """As a problem like any other."""
    async with served() as (_, client):
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "HEAD", "TRACE", "BREW"])
async def test_a_method_a_route_does_not_have_is_405(method: str) -> None:
    """The answer names those it has."""
    async with served() as (_, client):
        answer = await client.request(method, "/v1/notifications")
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) >= {"GET", "POST"}


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer wp_abcdefgh",
        "Bearer wp_abcdefgh_" + "a" * 52,
        "Bearer é",
        "Bearer wp_" + "a" * 10_000,
    ],
)  # fmt: skip - one list
async def test_a_missing_or_wrong_key_is_401(header: str) -> None:
    """Before the body is read, whatever the route."""
    async with served(RestSettings(linger_s=0.01)) as (service, client):
        for method, path in (("GET", "/v1/dead"), ("POST", "/v1/notifications"), ("GET", "/v1/nothing")):
            raw = {b"authorization": header.encode("latin-1")}
            answer = await client.request(method, path, headers=raw)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            assert answer.headers["www-authenticate"].startswith("Bearer")
        unread = {"method": "POST", "headers": []}
        assert problem_in(await asked(service, [], **unread)) == (401, "unauthenticated")


async def test_a_key_may_come_as_x_api_key() -> None:
    """For clients that cannot set Authorization."""
    async with served() as (service, client):
        del client.headers["authorization"]
        answer = await client.get("/v1/dead", headers={"x-api-key": service.made.text})
        assert answer.status_code == 200


async def test_a_revoked_key_dies_within_five_seconds() -> None:
    """A verified one is believed for a while; the secret must match, not the prefix alone."""
    async with served() as (service, client):
        assert (await client.get("/v1/dead")).status_code == 200
        wrong = service.made.text[:-1] + ("a" if service.made.text[-1] != "a" else "b")
        assert (await client.get("/v1/dead", headers={"authorization": f"Bearer {wrong}"})).status_code == 401
        await service.keys.revoke(service.made.prefix, service.clock.now())
        service.clock.advance(5_000)
        assert (await client.get("/v1/dead")).status_code == 401


async def test_a_key_of_an_app_that_is_gone_is_403() -> None:
    """The store may know apps that the configuration no longer names."""
    async with served() as (service, client):
        key = api_key.make(bytes(range(7, api_key.RANDOM_BYTES + 7)))
        await service.keys.add(ApiKey(key.prefix, key.secret_hash, AppId("gone"), CallerId("x"), service.clock.now()))
        answer = await client.get("/v1/dead", headers={"authorization": f"Bearer {key.text}"})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@shows("S3-102")
@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/notifications", shown()), ("/v1/notifications/019c1234-5678-7abc-8def-0123456789ab/replay", {})],
)
async def test_an_error_nobody_foresaw_is_500_and_says_nothing(path: str, body: dict[str, Any]) -> None:
    """The log has the place and the kind, not the text, which may quote what was sent."""
    async with served() as (service, client):

        async def broken(_batch: object) -> list:
            raise RuntimeError("hush-hush")

        service.work.accept = broken  # type: ignore[method-assign,assignment] # a bug
        answer = await client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert "hush" not in answer.text
        ((event, fields),) = service.telemetry.events
        assert (event, fields["error"]) == (Event.REQUEST_FAILED, "RuntimeError")
        assert fields["request_id"] == answer.headers["x-request-id"]
        assert "hush" not in str(fields)


@shows("S3-89")
async def test_the_time_of_an_answer_is_observed_by_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requirements S3-89."""
    async with served() as (service, client):
        look, seen = service.devices.of_user, []

        async def slow(*asked: Any, **how: Any) -> Any:
            service.clock.advance(250)
            return await look(*asked, **how)

        def observe(metric: Metric, value: float, /, **labels: str) -> None:
            seen.append((metric, value, labels.get("route")))

        monkeypatch.setattr(service.devices, "of_user", slow)
        monkeypatch.setattr(service.telemetry, "observe", observe)
        await client.get("/v1/devices/user-1")
        await client.get("/v1/dead")
        times = [(route, round(value, 3)) for metric, value, route in seen if metric is Metric.REQUEST_SECONDS]
        assert times == [("/v1/devices/{user_id}", 0.25), ("/v1/dead", 0)]


@shows("S3-89")
async def test_every_request_is_counted_once_by_route_and_status() -> None:
    """By the route's pattern: an id or a user never becomes a label."""
    async with served() as (service, client):
        await client.post("/v1/notifications", json=shown())
        await client.get("/v1/devices/user-1")
        await client.get("/v1/nothing/user-1")
        await client.get("/v1/notifications/nope")
        labels = [labels for metric, labels in service.telemetry.counts if "route" in labels]
        assert [(each["route"], each["status"]) for each in labels] == [
            ("/v1/notifications", "202"),
            ("/v1/devices/{user_id}", "200"),
            ("unrouted", "404"),
            ("/v1/notifications/{notification_id}", "404"),
        ]
