"""Lists off the wire: NDJSON or CSV, read as they come in, a bounded piece at a time."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec
from litestar.types import Receive

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.entrypoints.rest.body_reader import ClientGone
from waypost.entrypoints.rest.problems import RequestRefused
from waypost.entrypoints.rest.settings import RestSettings

LINE_LIMIT_BYTES = 16 * 1024
_NDJSON, _CSV = "application/x-ndjson", "text/csv"

_FIELDS = msgspec.json.Decoder(dict[str, str | int | float | bool | None]).decode


def lines_in(
    headers: Iterable[tuple[bytes, bytes]],
    receive: Receive,
    settings: RestSettings,
    decode: Callable[[str], Any] = _FIELDS,
) -> AsyncIterator[tuple[int, Any]]:
    """Read each line that holds something, by its number from 1: its fields, or InvalidRequest as a value.

    *decode* reads a line of NDJSON, and may raise InvalidRequest. RequestRefused or InvalidRequest is raised where the
    list is unreadable.
    """
    media = dict(headers).get(b"content-type", b"").decode("latin-1").lower().partition(";")[0].strip()
    lines = _lines(_chunks(receive, settings))
    if media == _NDJSON:
        return _from_ndjson(lines, decode)
    if media == _CSV:
        return _from_csv(lines)
    raise RequestRefused(ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"send {_NDJSON} or {_CSV}")


async def _from_ndjson(
    lines: AsyncIterator[tuple[int, str]], decode: Callable[[str], Any]
) -> AsyncIterator[tuple[int, Any]]:
    async for n, line in lines:
        try:
            yield n, decode(line)
        except InvalidRequest as misfit:
            yield n, _refused(n, str(misfit))
        except msgspec.ValidationError:
            yield n, _refused(n, "must be an object of texts, numbers and truth values")
        except msgspec.DecodeError:
            yield n, _refused(n, "not valid JSON", ErrorCode.INVALID_JSON)


async def _from_csv(lines: AsyncIterator[tuple[int, str]]) -> AsyncIterator[tuple[int, Any]]:
    columns: list[str] | None = None
    async for n, line in lines:
        cells = _cells(n, line)
        if columns is None:
            if isinstance(cells, InvalidRequest):
                raise cells
            columns = [cell.strip() for cell in cells]
            if "user_id" not in columns or len(set(columns)) != len(columns):
                raise _refused(n, "must name each column once, one of them user_id")
        elif isinstance(cells, InvalidRequest):
            yield n, cells
        elif len(cells) != len(columns):
            yield n, _refused(n, f"has {len(cells)} cells, the head has {len(columns)}")
        else:
            yield n, dict(zip(columns, cells, strict=True))


def _cells(n: int, line: str) -> list[str] | InvalidRequest:
    if line.count('"') % 2:
        return _refused(n, "a cell may hold no line break")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return _refused(n, "not valid CSV")


def _refused(n: int, why: str, code: ErrorCode | None = None) -> InvalidRequest:
    return InvalidRequest((Fault(f"line {n}", why),), code)


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
