"""Texts that a store could not keep or look for: refused at the door, in every parameter and in every body."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import msgspec.inspect
import pytest

from tests.adapters.rest.service import served
from waypost.bootstrap import features
from waypost.entrypoints.rest.answers import spoken_of
from waypost.entrypoints.rest.app import ROUTES
from waypost.entrypoints.rest.compat import notify, user_notifications, user_tokens

NUL = "a\x00"
HANDLERS = (*ROUTES, *features.routes(), *notify.ROUTES, *user_notifications.ROUTES, *user_tokens.ROUTES)
CONTENT = {"title", "subtitle", "body", "message", "data", "overrides", "variables", "recipients"} | {
    "actions",
    "sound",
    "category",
    "thread",
    "android_channel",
    "collapse_key",
}
"""What a notification says is kept as bytes, whole, and bounded as a whole (STORED_LIMIT_BYTES)."""


@pytest.mark.asyncio
async def test_every_query_parameter_refuses_a_nul() -> None:
    """Generated from the API's own document, so that a new parameter is asked, too."""
    async with served() as (service, client):
        document = (await client.get("/openapi.json")).json()
        asked = 0
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                for each in operation.get("parameters", ()):
                    if each["in"] != "query":
                        continue
                    url = re.sub(r"\{[^}]*\}", "x", path)
                    answer = await client.request(method, url, params={each["name"]: NUL})
                    named = (method, path, each["name"], answer.text)
                    assert 400 <= answer.status_code < 500, named
                    if not path.startswith("/api"):  # whose envelope has no code
                        assert answer.json()["code"] in {"invalid_request", "invalid_cursor", "not_found"}, named
                    asked += 1
        assert asked > 10
        assert not service.telemetry.events


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "size"), [("/v1/audit", 8), ("/v1/outbox", 8), ("/v1/dead", 20)], ids=["audit", "outbox", "dead"]
)
async def test_a_number_in_a_cursor_that_no_store_can_hold_is_400(path: str, size: int) -> None:
    cursor = base64.urlsafe_b64encode(b"\xff" * size).decode().rstrip("=")
    async with served() as (_, client):
        answer = await client.get(path, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


def _unsafe(kind: Any, at: str, seen: set[int]) -> Iterator[str]:
    """The texts inside of *kind* that admit a NUL, or any length."""
    if isinstance(kind, msgspec.inspect.StrType):
        if kind.max_length is None or kind.pattern is None or re.search(kind.pattern, NUL):
            yield at
    elif isinstance(kind, msgspec.inspect.StructType):
        if id(kind.cls) not in seen:
            fields = [field for field in kind.fields if field.name not in CONTENT]
            for field in fields:
                yield from _unsafe(field.type, f"{at}.{field.name}", seen | {id(kind.cls)})
    else:
        for name in ("types", "item_types"):
            for each in getattr(kind, name, ()):
                yield from _unsafe(each, at, seen)
        for name in ("item_type", "type", "key_type", "value_type"):
            if hasattr(kind, name):
                yield from _unsafe(getattr(kind, name), at, seen)


def test_every_text_of_every_body_is_bounded_and_without_nul() -> None:
    """Of every route, with those of the other shapes; what gRPC takes is turned into the same types."""
    bodies = {spoken_of(handler).body for handler in HANDLERS if spoken_of(handler).body is not None}
    assert len(bodies) > 5
    unsafe = {found for body in bodies for found in _unsafe(msgspec.inspect.type_info(body), body.__name__, set())}
    assert sorted(unsafe) == []
