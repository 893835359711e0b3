"""Lists of recipients off the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from litestar.types import Receive

from waypost.domain.errors import InvalidRequest
from waypost.entrypoints.rest.lists import lines_in
from waypost.entrypoints.rest.settings import RestSettings


def recipients_in(
    headers: Iterable[tuple[bytes, bytes]], receive: Receive, settings: RestSettings
) -> AsyncIterator[tuple[str, object]]:
    """Read each recipient and its place (``line 7``); RequestRefused or InvalidRequest where the list is unreadable."""
    return _each(lines_in(headers, receive, settings))


async def _each(lines: AsyncIterator[tuple[int, Any]]) -> AsyncIterator[tuple[str, object]]:
    async for n, fields in lines:
        if isinstance(fields, InvalidRequest):
            raise fields
        yield f"line {n}", fields
