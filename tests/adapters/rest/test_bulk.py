"""Bulk jobs over the wire: made, filled, followed and ordered about, or refused by the line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import DEMO, Service, served
from tests.shows import shows
from waypost.domain.bulk import JobId, JobOrder
from waypost.domain.ids import parse_id
from waypost.entrypoints.rest.settings import RestSettings

pytestmark = pytest.mark.asyncio

NDJSON, CSV = {"content-type": "application/x-ndjson"}, {"content-type": "text/csv; charset=utf-8"}
MESSAGE = {"title": "Hi {{name}}"}


async def _waiting(client: httpx.AsyncClient, **fields: Any) -> str:
    answer = await client.post("/v1/bulk", json={"notification": MESSAGE, "upload": True} | fields)
    assert (answer.status_code, answer.json()["state"]) == (202, "uploading")
    job_id: str = answer.json()["id"]
    return job_id


def _list_of(service: Service, job_id: str) -> dict[str, dict[str, str]]:
    job = service.store.jobs[JobId(parse_id(job_id))]
    return {user: each.variables for user, each in job.recipients.items()}


@shows("S2-01")
async def test_a_list_in_the_request_is_stored_and_the_job_runs() -> None:
    async with served() as (service, client):
        body = {
            "notification": MESSAGE,
            "recipients": ["ann", {"user_id": "bob", "name": "Bo"}],
            "variables": {"name": 1},
        }
        answer = await client.post("/v1/bulk", json=body, headers={"idempotency-key": "k"})
        job = answer.json()
        assert (answer.status_code, job["state"], job["uploaded"], job["enqueued"]) == (202, "running", 2, 0)
        assert _list_of(service, job["id"]) == {"ann": {}, "bob": {"name": "Bo"}}
        again = await client.post("/v1/bulk", json=body, headers={"idempotency-key": "k"})
        assert (again.status_code, again.json()["id"]) == (200, job["id"])
        other = await client.post("/v1/bulk", json=body | {"rate": 5}, headers={"idempotency-key": "k"})
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
        async with service.client(service.others.text) as others:
            assert (await others.get(f"/v1/bulk/{job['id']}")).status_code == 404
        assert [each["id"] for each in (await client.get("/v1/bulk")).json()["items"]] == [job["id"]]


UPLOADS: dict[str, tuple[dict[str, str], bytes, dict[str, dict[str, str]]]] = {
    "NDJSON": (
        NDJSON,
        b'{"user_id": "ann", "name": "A"}\r\n\n{"user_id": "bob", "name": 7}',
        {"ann": {"name": "A"}, "bob": {"name": "7"}},
    ),
    "CSV": (CSV, b'name,user_id,x\n"A, B",ann,1\n7,bob,\n', {"ann": {"name": "A, B"}, "bob": {"name": "7"}}),
    "CSV of a spreadsheet": (CSV, b"\xef\xbb\xbfuser_id,name\r\nann,\xc3\x84\r\n", {"ann": {"name": "Ä"}}),
    "nobody": (NDJSON, b"", {}),
}  # fmt: skip - a line each


@pytest.mark.parametrize("name", UPLOADS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_an_upload_is_read_as_it_comes_in(name: str, size: int) -> None:
    """However its bytes are cut."""
    headers, body, expected = UPLOADS[name]

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async with served() as (service, client):
        job_id = await _waiting(client)
        answer = await client.put(f"/v1/bulk/{job_id}/recipients", content=parts(), headers=headers)
        assert (answer.status_code, answer.json()["state"]) == (202, "running"), answer.text
        assert _list_of(service, job_id) == expected
        again = await client.put(
            f"/v1/bulk/{job_id}/recipients", content=b'{"user_id": "c", "name": "C"}', headers=NDJSON
        )
        assert (again.status_code, again.json()["code"]) == (409, "wrong_state")


REFUSED: dict[str, tuple[dict[str, str], bytes, int, str]] = {
    "no JSON": (NDJSON, b'{"user_id": "ann", "name": "A"}\n{"user_id', 400, "line 2"),
    "no object": (NDJSON, b'"ann"', 400, "line 1"),
    "a nested value": (NDJSON, b'{"user_id": "ann", "name": [1]}', 400, "line 1"),
    "no user": (NDJSON, b'{"name": "A"}', 400, "line 1.user_id"),
    "a missing variable": (NDJSON, b'{"user_id": "ann"}', 400, "line 1.name"),
    "no UTF-8": (NDJSON, b'{"user_id": "\xff", "name": "A"}', 400, "line 1"),
    "a long line": (NDJSON, b'{"user_id": "ann", "name": "' + b"A" * 20_000, 413, "line 1"),
    "a head without users": (CSV, b"name\nann\n", 400, "line 1"),
    "a column twice": (CSV, b"user_id,name,name\n", 400, "line 1"),
    "a cell too many": (CSV, b"user_id,name\nann,A,B\n", 400, "line 2"),
    "a line break in a cell": (CSV, b'user_id,name\nann,"A\nB"\n', 400, "line 2"),
    "another type": ({"content-type": "application/json"}, b"[]", 415, ""),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_wrong_is_named_by_its_line_and_the_list_may_come_again(name: str) -> None:
    headers, body, status, path = REFUSED[name]
    async with served() as (_, client):
        job_id = await _waiting(client)
        answer = await client.put(f"/v1/bulk/{job_id}/recipients", content=body, headers=headers)
        assert (answer.status_code, [each["path"] for each in answer.json().get("faults", [])]) == (
            status,
            [path] if path else [],
        )
        assert (await client.get(f"/v1/bulk/{job_id}")).json()["state"] == "uploading"
        mended = await client.put(f"/v1/bulk/{job_id}/recipients", content=b"user_id,name\nann,A\n", headers=CSV)
        assert mended.status_code == 202


async def test_a_list_over_the_limit_is_refused_before_it_is_all_read() -> None:
    async with served(RestSettings(upload_limit_bytes=100)) as (_, client):
        job_id = await _waiting(client)
        line = b'{"user_id": "ann", "name": "A"}\n'
        answer = await client.put(f"/v1/bulk/{job_id}/recipients", content=line * 10, headers=NDJSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_orders_answer_with_the_job_or_say_why_not() -> None:
    async with served() as (_, client):
        body = {"notification": {"title": "Hi"}, "registry": {"platforms": ["ios"]}}
        job = (await client.post("/v1/bulk", json=body)).json()
        path = f"/v1/bulk/{job['id']}"
        assert (await client.post(f"{path}/pause")).json()["state"] == "paused"
        assert (await client.post(f"{path}/resume")).json()["state"] == "running"
        assert (await client.post(f"{path}/cancel")).json()["state"] == "cancelled"
        refused = await client.post(f"{path}/resume")
        assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
        for unknown in ("/v1/bulk/nonsense", f"/v1/bulk/{job['id'][:-1]}x", f"{path}/recipients/ann"):
            assert (await client.get(unknown)).status_code == 404


async def test_a_failed_job_says_what_kind_of_error_it_was() -> None:
    async with served() as (service, client):
        job = (await client.post("/v1/bulk", json={"notification": {"title": "t"}, "recipients": ["ann"]})).json()
        assert job["failure"] is None
        await service.bulk.order(DEMO, JobId(parse_id(job["id"])), JobOrder.FAIL, service.clock.now(), "DataError")
        shown = (await client.get(f"/v1/bulk/{job['id']}")).json()
        assert (shown["state"], shown["failure"]) == ("failed", "DataError")
        assert (await client.post(f"/v1/bulk/{job['id']}/resume")).json()["failure"] is None


async def test_opting_out_and_in_again() -> None:
    async with served() as (service, client):
        path = "/v1/users/a%2Fb/bulk-opt-out"
        assert (await client.get(path)).json() == {"opted_out": False}
        assert (await client.put(path)).status_code == 204
        assert (DEMO, "a/b") in service.store.opted_out
        assert (await client.get(path)).json() == {"opted_out": True}
        assert [(await client.delete(path)).status_code for _ in range(2)] == [204, 404]
