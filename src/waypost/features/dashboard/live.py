"""Pages that follow what happens: as server-sent events, each of which is the page as it is now.

The browser asks for the page's own address as an event stream (``static/page.js`` does). The page is made again every
so many seconds, as it would be for a request: whoever has no session any more, or not the role, is told to load it
anew. A page that has not changed is not sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from litestar import Response

from waypost.domain.errors import ErrorCode, Unavailable, WaypostError
from waypost.entrypoints.live.messages import EVENT_STREAM_HEAD
from waypost.entrypoints.rest.problems import RequestRefused
from waypost.entrypoints.rest.serving import take_over
from waypost.features.dashboard.desk import Asked, Desk
from waypost.features.dashboard.site import Site
from waypost.telemetry import Event

STREAM_TYPE: Final = "text/event-stream"
STREAMS_LIMIT: Final = 100
"""The most pages that are followed in one process."""
PERSON_LIMIT: Final = 10
"""The most of one person."""
AGE_S: Final = 600.0
"""Seconds after which a stream ends; the browser begins another by itself."""
_SLICE_S: Final = 0.5
"""Seconds between looks whether the process is on its way out."""
_WAITING_BYTES: Final = 256 * 1024
"""The most that waits in memory for a browser that is behind: it gets the page as it is once it has caught up."""
_GONE: Final = b"event: gone\ndata:\n\n"
_STILL: Final = b":\n\n"
_HEAD: Final = EVENT_STREAM_HEAD + b"x-content-type-options: nosniff\r\n\r\n"
_NO_MORE: Final = frozenset({ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND})
"""What is wrong where the page itself has to say so."""

Enter = Callable[[], Awaitable[Desk]]
Draw = Callable[[Desk], Awaitable[Response[bytes]]]


class Streams:
    """The streams of one process."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    def check_room(self, person: str) -> None:
        """Raise Unavailable where no more are taken, or none of *person*."""
        if self._of.total() >= STREAMS_LIMIT or self._of[person] >= PERSON_LIMIT:
            raise Unavailable("too many pages are followed; this one stays as it is", ErrorCode.RATE_LIMITED, 30)

    def add(self, person: str, following: Awaitable[None]) -> None:
        """Count a stream in until *following* ends."""

        async def follow() -> None:
            try:
                await following
            finally:
                self._of[person] -= 1

        self._of[person] += 1
        task = asyncio.ensure_future(follow())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Browser(asyncio.Protocol):
    """The other end of a stream, which has nothing more to say."""

    def __init__(self) -> None:
        self.is_gone = asyncio.Event()
        self.is_behind = False
        self.transport: asyncio.Transport

    def data_received(self, data: bytes) -> None:
        self.transport.close()

    def pause_writing(self) -> None:
        self.is_behind = True

    def resume_writing(self) -> None:
        self.is_behind = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone.set()

    def write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)


def asks_to_follow(request: Asked) -> bool:
    """Tell whether a browser asks for a page as a stream of events."""
    return request.headers.get("accept") == STREAM_TYPE


async def follow(request: Asked, enter: Enter, draw: Draw, every_s: float) -> Response[bytes]:
    """Take the connection of *request* over, and send the page now and whenever it has changed."""
    try:
        desk = await enter()
    except WaypostError as error:
        if error.code not in _NO_MORE:
            raise
        return Response(_GONE, media_type=STREAM_TYPE)
    site = desk.site
    streams: Streams = site.memory.setdefault(Streams, Streams())
    streams.check_room(desk.operator.name)
    browser = _Browser()
    transport = take_over(request.scope, _HEAD, browser)
    if transport is None:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "a stream begins with its request alone", closes=True)
    browser.transport = transport
    transport.set_write_buffer_limits(high=_WAITING_BYTES)
    streams.add(desk.operator.name, _follow(site, browser, enter, draw, every_s))
    return Response(b"", media_type=STREAM_TYPE)


async def _follow(site: Site, browser: _Browser, enter: Enter, draw: Draw, every_s: float) -> None:
    clock, last = asyncio.get_running_loop().time, b""
    ends_s = clock() + AGE_S
    try:
        while clock() < ends_s:
            if not browser.is_behind:
                page = (await draw(await enter())).content
                browser.write(_STILL if page == last else b"data: %s\n\n" % msgspec.json.encode(page.decode()))
                last = page
            if await _is_over(site, browser, every_s):
                break
    except WaypostError as error:
        if error.code in _NO_MORE:
            browser.write(_GONE)
    except Exception as surprise:  # noqa: BLE001 - nobody waits for this task: it is told here or nowhere
        site.api.telemetry.event(Event.STAGE_FAILED, stage="dashboard", error=type(surprise).__name__)
    finally:
        browser.transport.close()


async def _is_over(site: Site, browser: _Browser, every_s: float) -> bool:
    """Wait until the next look; True where the browser, or this process, goes before."""
    clock = asyncio.get_running_loop().time
    until_s = clock() + every_s
    while (left_s := until_s - clock()) > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(left_s, _SLICE_S)):
                await browser.is_gone.wait()
        if browser.is_gone.is_set() or site.api.draining():
            return True
    return False
