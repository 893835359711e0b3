"""Request bodies off the wire: bounded in size, time and sum."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from litestar.types import Receive

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.entrypoints.rest.problems import RequestRefused
from waypost.entrypoints.rest.settings import RestSettings

LINGER_LIMIT_BYTES = 8 * 1024 * 1024
"""The most bytes of an unread body that are thrown away."""


class ClientGone(Exception):
    """The error that the client hung up: there is nobody to answer."""


class BodyReader:
    """A reader of whole bodies; it knows how much all of those being read hold together."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._held_bytes = 0

    async def read(
        self, headers: Iterable[tuple[bytes, bytes]], receive: Receive, limit_bytes: int, *, any_type: bool = False
    ) -> bytes:
        """Read the body; RequestRefused where it is too large, too slow or not JSON, Unavailable while too many are
        being read. *any_type* takes what is not JSON as well.
        """
        declared = _declared(headers)
        if declared is not None and declared > limit_bytes:
            raise _too_large(declared, limit_bytes)
        try:
            async with asyncio.timeout(self._settings.body_timeout_s):
                body = await self._collected(receive, limit_bytes)
        except TimeoutError:
            why = f"the body took more than {self._settings.body_timeout_s:g} s"
            raise RequestRefused(ErrorCode.REQUEST_TIMEOUT, why, closes=True) from None
        if body and not any_type:
            check_type(dict(headers))
        return body

    async def _collected(self, receive: Receive, limit_bytes: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientGone
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                self._held_bytes += len(part)
                if size > limit_bytes:
                    raise _too_large(size, limit_bytes)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
                if self._held_bytes > self._settings.bodies_limit_bytes:
                    raise Unavailable("too many bodies are being read", ErrorCode.BACKLOG_FULL)
        finally:
            self._held_bytes -= size


async def linger(receive: Receive, timeout_s: float) -> None:
    """Throw away what is left of a body, so that the client reads the refusal before the connection closes."""
    size = 0
    try:
        async with asyncio.timeout(timeout_s):
            while size < LINGER_LIMIT_BYTES:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                size += len(message.get("body", b""))
    except TimeoutError:
        return


def _declared(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    for name, value in headers:
        if name == b"content-length":
            return int(value[:18]) if value.isdigit() else None
    return None


def check_type(fields: Mapping[bytes, bytes]) -> None:
    """Raise RequestRefused where a body is not JSON as it stands."""
    if fields.get(b"content-type") == b"application/json" and b"content-encoding" not in fields:
        return
    if fields.get(b"content-encoding", b"identity").lower() != b"identity":
        raise RequestRefused(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "send the body without a content encoding")
    media, _, parameters = fields.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    charset = parameters.strip().removeprefix("charset=").strip('"')
    if media.strip() != "application/json" or charset not in ("", "utf-8"):
        raise RequestRefused(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "send JSON with Content-Type: application/json")


def _too_large(size: int, limit_bytes: int) -> RequestRefused:
    return RequestRefused(ErrorCode.TOO_LARGE, f"a body of {size} bytes or more, at most {limit_bytes}", closes=True)
