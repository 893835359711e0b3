"""The server of the application: uvicorn's options, and the limits it lacks."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.entrypoints.request_ids import HEADER, request_id
from waypost.entrypoints.rest.problems import PROBLEM_TYPE, RequestRefused, encode_problem, problem_of
from waypost.entrypoints.rest.settings import RestSettings
from waypost.entrypoints.rest.whole_request import HotRoutes, WholeRequest, may_be_whole

PIPELINE_LIMIT: Final = 100
"""The most requests of one connection that wait for the answer to the one before."""

_VOUCH: Final = "waypost.vouch"
"""The key of a scope under which stands what an application calls as soon as it knows who is calling."""
_TAKE_OVER: Final = "waypost.take_over"
"""The key of a scope under which stands what an application calls that speaks on the connection itself from then on."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_STEPS: Final = 4
"""The pieces into which as much as a head may have is cut, so that one read brings no more unseen."""

END_OF_TLS_S: Final = 3.0
"""Seconds that an idle client has to answer the end of TLS when the server stops: one that reads nothing never does."""
LEAST_TAKEN_BYTES: Final = 64 * 1024
"""The bytes that a client that is behind must take of its answers in the time that a connection may be idle."""


def serve_options(settings: RestSettings, tls: ssl.SSLContext | None = None) -> dict[str, Any]:
    """Return options for ``uvicorn.Config``, for a server on a socket that is listening already."""
    return {
        "ssl_context_factory": None if tls is None else lambda *_: tls,
        "http": _bounded(settings),
        "ws": "none",
        "loop": "none",
        "lifespan": "off",
        "interface": "asgi3",
        "access_log": False,
        "log_config": None,
        "log_level": "critical",  # events are logged by the request handler; the rest would be plain text among JSON
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": settings.keep_alive_s,
        "backlog": settings.backlog,
    }


def vouch_for(scope: Any) -> None:
    """Note that the caller of the request in *scope* is known, so that its connection is kept before others."""
    if (vouch := scope.get(_VOUCH)) is not None:
        vouch()


def take_over(scope: Any, head: bytes, protocol: asyncio.Protocol) -> asyncio.Transport | None:
    """Write *head* as the answer to the request in *scope*, and let *protocol* have the connection from then on.

    None where the connection cannot be had: it is not one of this server, or other requests wait on it.
    """
    taker = scope.get(_TAKE_OVER)
    taken: asyncio.Transport | None = None if taker is None else taker(head, protocol)
    return taken


class BoundedProtocol(HttpToolsProtocol):
    """A bound on HTTP/1.1 in size, time and number; a head that breaks a bound gets a problem answer.

    Past the most connections, the one that has had no request of a known caller in hand for the longest makes room.
    Fields behind a body (trailers) are passed over: whoever looked at the head before us has not seen them.
    """

    settings = RestSettings()
    idle: ClassVar[dict[BoundedProtocol, None]] = {}
    """The connections of this server without a request of a known caller in hand, the longest first."""
    placed: ClassVar[set[BoundedProtocol]] = set()
    """The connections of this server that were not told to go."""

    _bytes_without_news = 0
    """The bytes since a head, a piece of a body or a message was last complete: a head, a trailer, a chunk's line."""
    memory: dict[str, Any]
    """What the routes of whole requests remember from one request to the next."""
    _hot: HotRoutes | None = None
    _coming: WholeRequest | None = None
    """A request that may come whole, of which the body is still to come in this read."""
    _in_head = True
    _has_begun = False
    """Whether bytes of a head have come that is not whole."""
    _head_timer: asyncio.TimerHandle | None = None
    _reader_timer: asyncio.TimerHandle | None = None
    _idle_until: float | None = None
    """The time of the loop at which the connection has been idle for too long; None while a request is in hand."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its base does
        """Give the first request's head its time, and its connection a place."""
        super().connection_made(transport)
        self.memory = {}
        self._hot = getattr(self.app, "whole", None)
        self._await_head()
        self.idle[self] = None
        self.placed.add(self)
        if len(self.placed) > self.settings.connections_limit:
            longest = next(iter(self.idle))
            longest._give_up_place()
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the watch."""
        self._stop_watch()
        self._stop_idle_timer()
        self._stop_watching_reader()
        self._give_up_place()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what the parser may keep until it is whole."""
        limit = self.settings.headers_limit_bytes
        step = max(1, limit // _STEPS)
        for at in range(0, len(data), step):
            piece = data[at : at + step]
            self._bytes_without_news += len(piece)
            super().data_received(piece)
            if self._bytes_without_news > limit:
                self._refuse(RequestRefused(ErrorCode.HEADERS_TOO_LARGE, f"at most {limit} bytes"))
            if self.transport.is_closing():
                break
        if self._coming is not None:
            self._hand_over(self._coming)
        if self._in_head and self._head_timer is None and self._bytes_without_news and not self.transport.is_closing():
            self._await_head()

    def on_message_begin(self) -> None:
        """Begin a head; what uvicorn keeps of a request is made when it is to answer it."""
        self._has_begun = True
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head."""
        if self._in_head:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Begin the body, which has limits of its own, since the head is whole."""
        if len(self.pipeline) >= PIPELINE_LIMIT:
            raise ValueError("too many requests are waiting on one connection")
        version = self.parser.get_http_version()
        fields = dict(self.headers)
        is_unique = len(fields) == len(self.headers)
        hosts = b"host" in fields if is_unique else sum([name == b"host" for name, _ in self.headers])
        if version not in _VERSIONS or hosts > 1 or (hosts == 0 and version != "1.0"):
            raise ValueError("HTTP/1.0 or 1.1, with one Host (RFC 9112, section 3.2)")
        self._coming = self._hot_request(version, fields) if is_unique else None
        self._in_head = self._has_begun = False
        self._bytes_without_news = 0
        self._stop_watch()
        if self._coming is None:
            self._give_to_uvicorn()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._bytes_without_news = 0
        if self._coming is not None:
            self._coming.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin the next head, whose time runs from its first byte."""
        self._in_head = True
        self._bytes_without_news = 0
        if self._coming is None or self._hot is None:
            super().on_message_complete()
            return
        request, self._coming = self._coming, None
        self.cycle = request  # type: ignore[assignment]  # what uvicorn asks of a cycle, it answers
        task = self.loop.create_task(self._hot.answer(request))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _hot_request(self, version: str, fields: dict[bytes, bytes]) -> WholeRequest | None:
        """Return the request of which the head is whole, if it may be answered without ASGI."""
        before: RequestResponseCycle | None = self.cycle  # None until the first request's head is whole
        is_busy = before is not None and not before.response_complete
        if self._hot is None or is_busy or version != "1.1" or self.parser.get_method() != b"POST":
            return None
        limit, settings = self._hot.limits.get(self.url), self.settings
        is_large = len(fields) > settings.headers_limit or self._bytes_without_news > settings.headers_limit_bytes
        if limit is None or is_large or not may_be_whole(fields, limit):
            return None
        return WholeRequest(self, self.url, self.headers, fields)

    def _give_to_uvicorn(self) -> None:
        """Have uvicorn answer the request of which the head is whole."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers  # the very list that stands in the scope
        scope: Any = self.scope
        scope[_VOUCH] = self.vouch
        scope[_TAKE_OVER] = self._take_over
        super().on_headers_complete()

    def _hand_over(self, request: WholeRequest) -> None:
        """Have uvicorn answer a request that did not come whole."""
        self._coming = None
        self._give_to_uvicorn()
        if request.body:
            super().on_body(request.body)

    def on_response_complete(self) -> None:
        """Stop waiting: whatever is still to come of the request, nobody needs it."""
        is_closing = self.transport.is_closing()
        if not is_closing:
            self.idle[self] = None
        if is_closing or self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_until = self.loop.time() + self.settings.keep_alive_s
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self._look_if_idle)

    def shutdown(self) -> None:
        """Close as soon as nothing is in hand; an idle client's end of TLS is waited for shortly, not for 30 s."""
        super().shutdown()
        if self.scheme == "https" and self.transport.is_closing():
            self.loop.call_later(END_OF_TLS_S, self.transport.abort)

    def pause_writing(self) -> None:
        """Stop a client that is behind in time: what it does not take must not be kept for ever."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """Write on, since the client has caught up."""
        self._stop_watching_reader()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem."""
        self._refuse(InvalidRequest((Fault("", "not an HTTP/1.1 request"),)))

    def vouch(self) -> None:
        """Note that a known caller's request is in hand."""
        self.idle.pop(self, None)

    def _take_over(self, head: bytes, protocol: asyncio.Protocol) -> asyncio.Transport | None:
        is_more_to_come = self.pipeline or self._has_begun or self.cycle.more_body or self.cycle.body
        if is_more_to_come or self.cycle.response_started or self.transport.is_closing():
            return None
        self.cycle.disconnected = True  # whatever the application still says goes nowhere
        self._stop_watch()
        self._stop_watching_reader()
        self._stop_idle_timer()
        self._give_up_place()
        self.connections.discard(self)
        self.transport.set_protocol(protocol)
        self.transport.write(head)
        self._let_go()
        return self.transport

    def _let_go(self) -> None:
        """Drop what refers back to this protocol, so that its memory is free at once: thousands may wait like this."""
        scope: Any = self.scope
        del scope[_VOUCH], scope[_TAKE_OVER]
        self.parser = self.cycle = self.scope = self.flow = None  # type: ignore[assignment]  # as on a lost connection

    def _unset_keepalive_if_required(self) -> None:
        """Note that the connection is not idle; its timer runs on, since to end one for each request costs more."""
        self._idle_until = None

    def _look_if_idle(self) -> None:
        self.timeout_keep_alive_task = None
        if self._idle_until is None:
            return  # the next answer begins to wait anew
        if self.loop.time() < self._idle_until:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self._look_if_idle)
        else:
            self.timeout_keep_alive_handler()

    def _stop_idle_timer(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def _give_up_place(self) -> None:
        self.idle.pop(self, None)
        self.placed.discard(self)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.settings.head_timeout_s, self._too_slow)

    def _too_slow(self) -> None:
        self._refuse(
            RequestRefused(ErrorCode.REQUEST_TIMEOUT, f"the head took more than {self.settings.head_timeout_s:g} s")
        )

    def _stop_watch(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _watch_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(self.settings.keep_alive_s, self._look_at_reader, left)

    def _look_at_reader(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < LEAST_TAKEN_BYTES:
            self.transport.abort()
        else:
            self._watch_reader()

    def _stop_watching_reader(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _refuse(self, error: RequestRefused | InvalidRequest) -> None:
        """Close the connection, with an answer where it cannot be taken for that to another request."""
        if self.transport.is_closing():
            return
        self._stop_watch()
        cycle: RequestResponseCycle | None = self.cycle  # None until the first request's head is whole
        is_its_own = not self._in_head and not self.pipeline and cycle is not None and not cycle.response_started
        if cycle is None or cycle.response_complete or is_its_own:
            problem = problem_of(error)
            body = encode_problem(problem)
            head = f"HTTP/1.1 {problem.status} {problem.title}\r\ncontent-type: {PROBLEM_TYPE}\r\n"
            head += f"{HEADER}: {request_id(None)}\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()


def _bounded(settings: RestSettings) -> type[BoundedProtocol]:
    """Build a protocol class with these settings: uvicorn makes the protocol itself."""
    return type("BoundedProtocol", (BoundedProtocol,), {"settings": settings, "idle": {}, "placed": set()})
