"""Lists of recipients off the wire: NDJSON or CSV, read as they come in, a bounded piece at a time."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import AsyncIterator, Iterable

import msgspec
from litestar.types import Receive

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.entrypoints.rest.body_reader import ClientGone
from waypost.entrypoints.rest.problems import RequestRefused
from waypost.entrypoints.rest.settings import RestSettings

LINE_LIMIT_BYTES = 16 * 1024
_NDJSON, _CSV = "application/x-ndjson", "text/csv"

_fields = msgspec.json.Decoder(dict[str, str | int | float | bool | None])


def recipients_in(
    headers: Iterable[tuple[bytes, bytes]], receive: Receive, settings: RestSettings
) -> AsyncIterator[tuple[str, object]]:
    """Read each recipient and its place (``line 7``); RequestRefused or InvalidRequest where the list is unreadable."""
    media = dict(headers).get(b"content-type", b"").decode("latin-1").lower().partition(";")[0].strip()
    lines = _lines(_chunks(receive, settings))
    if media == _NDJSON:
        return _from_ndjson(lines)
    if media == _CSV:
        return _from_csv(lines)
    raise RequestRefused(ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"send {_NDJSON} or {_CSV}")


async def _from_ndjson(lines: AsyncIterator[tuple[int, str]]) -> AsyncIterator[tuple[str, object]]:
    async for n, line in lines:
        try:
            yield f"line {n}", _fields.decode(line)
        except msgspec.ValidationError:
            why = "must be an object of texts, numbers and truth values"
            raise InvalidRequest((Fault(f"line {n}", why),)) from None
        except msgspec.DecodeError:
            raise InvalidRequest((Fault(f"line {n}", "not valid JSON"),), ErrorCode.INVALID_JSON) from None


async def _from_csv(lines: AsyncIterator[tuple[int, str]]) -> AsyncIterator[tuple[str, object]]:
    columns: list[str] | None = None
    async for n, line in lines:
        cells = _cells(n, line)
        if columns is None:
            columns = [cell.strip() for cell in cells]
            if "user_id" not in columns or len(set(columns)) != len(columns):
                raise InvalidRequest((Fault(f"line {n}", "must name each column once, one of them user_id"),))
        elif len(cells) != len(columns):
            raise InvalidRequest((Fault(f"line {n}", f"has {len(cells)} cells, the head has {len(columns)}"),))
        else:
            yield f"line {n}", dict(zip(columns, cells, strict=True))


def _cells(n: int, line: str) -> list[str]:
    if line.count('"') % 2:
        raise InvalidRequest((Fault(f"line {n}", "a cell may hold no line break"),))
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        raise InvalidRequest((Fault(f"line {n}", "not valid CSV"),)) from None


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, str]]:
    """Split chunks into lines that hold something, numbered from 1."""
    n, rest = 0, b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_LIMIT_BYTES:
            raise InvalidRequest((Fault(f"line {n + len(whole) + 1}", _TOO_LONG),), ErrorCode.TOO_LARGE)
        for line in whole:
            n += 1
            if text := _text(n, line):
                yield n, text
    if text := _text(n + 1, rest):
        yield n + 1, text


_TOO_LONG = f"longer than {LINE_LIMIT_BYTES} bytes"


def _text(n: int, line: bytes) -> str:
    if len(line) > LINE_LIMIT_BYTES:
        raise InvalidRequest((Fault(f"line {n}", _TOO_LONG),), ErrorCode.TOO_LARGE)
    try:
        return line.decode("utf-8-sig" if n == 1 else "utf-8").strip()
    except UnicodeDecodeError:
        raise InvalidRequest((Fault(f"line {n}", "not valid UTF-8"),)) from None


async def _chunks(receive: Receive, settings: RestSettings) -> AsyncIterator[bytes]:
    """Read the body's parts; each may take as long as a whole body otherwise."""
    size = 0
    while True:
        try:
            async with asyncio.timeout(settings.body_timeout_s):
                message = await receive()
        except TimeoutError:
            why = f"nothing of the list came for {settings.body_timeout_s:g} s"
            raise RequestRefused(ErrorCode.REQUEST_TIMEOUT, why, closes=True) from None
        if message["type"] != "http.request":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size > settings.upload_limit_bytes:
            why = f"a list of {size} bytes or more, at most {settings.upload_limit_bytes}"
            raise RequestRefused(ErrorCode.TOO_LARGE, why, closes=True)
        yield part
        if not message.get("more_body", False):
            return
