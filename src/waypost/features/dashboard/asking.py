"""Calls of the API from within its own process: past authentication, and through everything behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from litestar.types import ASGIApp, Message

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.entrypoints.rest.answers import encode
from waypost.entrypoints.rest.router_errors import foreseen_error
from waypost.pipeline.intake import Caller

_PASSED_ON: Final = frozenset({b"x-forwarded-for", b"forwarded", b"user-agent"})
"""The fields of the browser's request by which an order's origin is found."""


def path_of(pattern: str, *parts: str) -> str:
    """Put *parts* into the ``{}`` of a path, encoded as a path needs them."""
    return pattern.format(*(quote(part, safe="") for part in parts))


async def ask(
    api: ASGIApp,
    caller: Caller,
    asked: Mapping[str, Any],
    method: str,
    path: str,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
) -> Any:
    """Call the API as *caller*, in the course of the request whose scope is *asked*, and return the decoded answer.

    What a caller outside would be refused is raised as the same WaypostError. Values of *query* that are None are left
    out; lists are given once for each item.
    """
    scope = _scope(caller, asked, method, path, query or {}, has_body=body is not None)
    sent = b"" if body is None else encode(body)
    messages: list[Message] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    try:
        await api(scope, receive, send)
    except Exception as error:
        foreseen = foreseen_error(error)
        if foreseen is None or foreseen is error:
            raise
        raise foreseen from error
    said = b"".join(each.get("body", b"") for each in messages if each["type"] == "http.response.body")
    if not messages or messages[0]["type"] != "http.response.start" or messages[0]["status"] >= 400:
        raise WaypostError(f"{method} {path} had no answer", ErrorCode.INTERNAL)
    return msgspec.json.decode(said) if said else None


def _scope(
    caller: Caller, asked: Mapping[str, Any], method: str, path: str, query: Mapping[str, Any], *, has_body: bool
) -> Any:
    given = {name: value for name, value in query.items() if value is not None}
    headers = [(name, value) for name, value in asked["headers"] if name in _PASSED_ON]
    if has_body:
        headers.append((b"content-type", b"application/json"))
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": asked["scheme"],
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": urlencode(given, doseq=True).encode(),
        "headers": [(b"host", b"localhost"), *headers],
        "client": asked["client"],
        "server": asked["server"],
        "user": caller,
        "state": {},
    }
