"""How the application is served: uvicorn's options, and the limits it lacks."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.entrypoints.rest.problems import PROBLEM_TYPE, Refused, encode_problem, problem_of
from waypost.entrypoints.rest.settings import RestSettings


def serve_options(settings: RestSettings, tls: ssl.SSLContext | None = None) -> dict[str, Any]:
    """Options for ``uvicorn.Config``, for a server on a socket that is listening already."""
    return {
        "ssl_context_factory": None if tls is None else lambda *_: tls,
        "http": _bounded(settings),
        "ws": "none",
        "loop": "none",
        "lifespan": "off",
        "interface": "asgi3",
        "access_log": False,
        "log_config": None,
        "log_level": "critical",  # events are logged by the door; the rest would be plain text among JSON
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": settings.keep_alive_s,
        "backlog": settings.backlog,
    }


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose request heads are bounded in size and time; a head that breaks a bound gets a problem answer."""

    settings = RestSettings()

    _head_bytes = 0
    _in_head = True
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its base does
        """Give the first request's head its time."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the watch."""
        self._stop_watch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head before it is parsed, since the parser would keep all of it."""
        if self._in_head:
            if self._head_timer is None:
                self._await_head()
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self.settings.headers_limit_bytes:
            self._refuse(Refused(ErrorCode.HEADERS_TOO_LARGE, f"at most {self.settings.headers_limit_bytes} bytes"))

    def on_headers_complete(self) -> None:
        """The head is whole: what follows is body, which has limits of its own."""
        self._in_head = False
        self._stop_watch()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What follows is the next head; its time begins with its first byte."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem."""
        self._refuse(InvalidRequest((Fault("", "not an HTTP/1.1 request"),)))

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.settings.head_timeout_s, self._too_slow)

    def _too_slow(self) -> None:
        self._refuse(Refused(ErrorCode.REQUEST_TIMEOUT, f"the head took more than {self.settings.head_timeout_s:g} s"))

    def _stop_watch(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, error: Refused | InvalidRequest) -> None:
        if self.transport.is_closing():
            return
        self._stop_watch()
        cycle: RequestResponseCycle | None = self.cycle  # None until the first request's head is whole
        if cycle is None or cycle.response_complete:
            problem = problem_of(error)
            body = encode_problem(problem)
            head = f"HTTP/1.1 {problem.status} {problem.title}\r\ncontent-type: {PROBLEM_TYPE}\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()


def _bounded(settings: RestSettings) -> type[BoundedProtocol]:
    """uvicorn makes the protocol itself, so its settings come with the class."""
    return type("BoundedProtocol", (BoundedProtocol,), {"settings": settings})
