"""Hostile paths, queries and cursors, on stores that cannot hold every text: refused or answered, never a surprise."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import grpc
import httpx
import pytest
import pytest_asyncio

from tests.adapters.grpc.service import reason, served, status_in
from tests.adapters.rest.service import shown
from tests.hostile.behind import Behind, behind
from tests.hostile.doors import AT_ONCE
from tests.hostile.parameters import VALUES, cursors, operations
from tests.tables import AddRow
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio

GET = "/waypost.v1.Notifications/Get"
PLAIN = {"user_id": "ann", "device_id": "phone", "prefix": "wp_a"}
"""What stands in a path beside the value that means no good; an id of nothing for all else."""
NOBODY = "019c1234-5678-7abc-8def-0123456789ab"
Asked = tuple[str, str]


@pytest_asyncio.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.engines)])
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Behind]:
    """A service on each store."""
    database = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    async with behind(tmp_path, database=database) as opened:
        yield opened


async def test_no_value_of_a_parameter_is_a_surprise(service: Behind, table: AddRow) -> None:
    """Each in each query and each path of the API's document."""
    async with service.client() as client:
        document = (await client.get("/openapi.json")).json()
        asked = [
            each
            for method, path, parameters in operations(document)
            for parameter in parameters
            for each in _asked(method, path, parameter)
        ]
        assert len(asked) > 2_000
        statuses = await _statuses(client, asked)
    table("hostile parameters", asked=len(asked), **{str(each): n for each, n in Counter(statuses.values()).items()})
    assert {each: status for each, status in statuses.items() if status >= 500} == {}
    assert service.log_faults() == []


async def test_no_cursor_is_a_surprise(service: Behind) -> None:
    """One that the API gave, changed in every place, and those that were made up; on each list there is."""
    async with service.client() as client:
        for n in range(3):
            assert (await client.post("/v1/notifications", json=shown(f"user-{n}"))).status_code == 202
        assert (await client.put(f"/v1/topics/{NOBODY}", json={})).status_code == 201
        series = {"steps": [{"name": "first", "notification": {"title": "Hello"}}]}
        assert (await client.put(f"/v1/series/{NOBODY}", json=series)).status_code == 201
        genuine = (await client.get("/v1/notifications", params={"limit": 1})).json()["next"]
        document = (await client.get("/openapi.json")).json()
        lists = [
            (method, path)
            for method, path, parameters in operations(document)
            if any(each["name"] == "cursor" for each in parameters)
        ]
        assert len(lists) > 3
        asked = [
            (method, f"{_filled(path)}?cursor={cursor}") for method, path in lists for cursor in set(cursors(genuine))
        ]
        statuses = await _statuses(client, asked)
    assert {each: status for each, status in statuses.items() if status not in (200, 400)} == {}
    assert set(statuses.values()) == {200, 400}
    assert service.log_faults() == []


async def test_grpc_takes_no_value_for_a_surprise(service: Behind) -> None:
    """As the id of a notification and as the key beside one: the same values, as the bytes that they stand for."""
    async with served(service=service) as door:
        codes: dict[str, set[str]] = {}
        for name, value in VALUES.items():
            told = unquote_to_bytes(value)
            codes[name] = {await _got(door, told), await _keyed(door, told)}
    assert {name: found for name, found in codes.items() if found & {"internal", "UNKNOWN", "INTERNAL"}} == {}
    assert service.log_faults() == []


def _asked(method: str, path: str, parameter: dict[str, Any]) -> Iterable[Asked]:
    name = parameter["name"]
    for value in VALUES.values():
        if parameter["in"] == "query":
            yield method, f"{_filled(path)}?{name}={value}"
        elif parameter["in"] == "path":
            yield method, _filled(path.replace(f"{{{name}}}", value))


def _filled(path: str) -> str:
    return re.sub(r"\{([^}]*)\}", lambda found: PLAIN.get(found[1], NOBODY), path)


async def _statuses(client: httpx.AsyncClient, asked: list[Asked]) -> dict[Asked, int]:
    found: dict[Asked, int] = {}
    for start in range(0, len(asked), AT_ONCE):
        some = asked[start : start + AT_ONCE]
        answers = await asyncio.gather(*(_ask(client, *each) for each in some))
        found.update(zip(some, answers, strict=True))
    return found


async def _ask(client: httpx.AsyncClient, method: str, target: str) -> int:
    body: dict[str, Any] | None = None if method in ("get", "delete") else {}
    url = client.base_url.copy_with(raw_path=target.encode())
    return (await client.request(method, url, json=body)).status_code


async def _got(door: Any, told: bytes) -> str:
    message = b"\x0a" + _length(len(told)) + told
    return await _code(door.channel.unary_unary(GET)(message, metadata=door.key))


async def _keyed(door: Any, told: bytes) -> str:
    key = told.decode("latin-1")
    if not key.isascii() or not key.isprintable() or len(key) > 4_000:
        return "no metadata"  # its own client refuses that
    return await _code(
        door.stub.Submit(pb.Submission(user_id="ann", title="t"), metadata=[*door.key, ("idempotency-key", key)])
    )


async def _code(call: Any) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        try:
            return reason(status_in(error))
        except KeyError:
            return error.code().name
    return "ok"


def _length(n: int) -> bytes:
    """As protobuf writes it: seven bits a byte, the lowest first."""
    found = bytearray()
    while n > 0x7F:
        found.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*found, n])
