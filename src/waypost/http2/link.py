"""One open connection of a pool: the protocol state, its transport, its age."""

import asyncio
from typing import Final, Protocol, cast

from .alerts import alert_of
from .connection import Connection
from .opening import ConnectionLimits
from .record import FrameAccount
from .stream import Stream

# Above this much unsent output a connection takes no more requests: the server does not read.
_MOST_UNSENT_BYTES: Final = 1 << 18
_PING: Final = b"waypost?"


class LinkOwner(Protocol):
    """The pool, as a link sees it."""

    def progressed(self, link: "Link") -> None:
        """Handle that streams ended or were refused, or the room changed."""

    def watch(self) -> None:
        """Check this connection more often, since it is in use again, or closes."""

    def closed(self, link: "Link", reason: str) -> None:
        """Handle that the connection is no more."""


class Link(asyncio.Protocol):
    """The driver of a `Connection` over a transport; output is written once per turn of the loop."""

    def __init__(self, owner: LinkOwner, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop) -> None:
        self.connection = Connection(limits)
        self.leaving = False
        self.answered = False
        self.opened_at = 0.0
        self.used_at = 0.0
        self.heard_at = 0.0
        self.pinged_at = 0.0
        self.waiting_since = 0.0  # when the oldest of the requests that met silence alone found the connection unused
        self.given_up_at = 0.0  # when a deadline last passed here
        self.closing_since = 0.0
        self.lifetime_s = 0.0  # 0: no limit
        self.leave_reason = ""
        self.alert = ""  # by which the server ended the connection
        self.resting = False
        self.record = FrameAccount()
        self.gone = asyncio.Event()
        self._owner = owner
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._started = False
        self._paused = False
        self._flush_due = False
        self._close_reason = ""

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; nothing is written before `start`."""
        # uvloop's transports are of classes of their own.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_MOST_UNSENT_BYTES)

    def data_received(self, data: bytes) -> None:
        """Let the protocol state read, the pool act on it, and the replies be written."""
        self.heard_at = self._loop.time()
        connection = self.connection
        connection.receive(data)
        if self._started:
            self._owner.progressed(self)
            if connection.failure:
                self.close(connection.failure)
            elif connection.has_output() and not self._flush_due:
                self._flush_soon()

    def pause_writing(self) -> None:
        """Pause, since the server does not read fast enough."""
        self._paused = True

    def resume_writing(self) -> None:
        """Write on, since the server has read on."""
        self._paused = False
        self._flush_soon()
        self._owner.progressed(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was left."""
        self._transport = None
        reason = self._close_reason or (f"connection lost: {exc}" if exc else "the server closed the connection")
        self.alert = alert_of(exc)
        # An alert before the server's first frame is the end of the handshake: the server has read nothing.
        self.connection.lost(reason, nothing_taken=self.alert != "" and not self.connection.greeted)
        self.gone.set()
        if self._started:
            self._owner.closed(self, reason)

    # Called by the pool

    def start(self) -> str:
        """Send the preface; return the reason if the connection is of no use already, otherwise nothing."""
        failure = self.connection.failure
        if self._transport is None or failure:
            self.abort(failure)
            return failure
        self._started = True
        self.opened_at = self.used_at = self.heard_at = self._loop.time()
        self.flush()
        return ""

    def room(self) -> int:
        """Return how many requests may be sent now."""
        return 0 if self._paused or self.leaving or self.resting else self.connection.room()

    def send(self, stream: Stream) -> None:
        """Start a request; it is written at the end of this turn of the loop."""
        self.send_all([stream])

    def send_all(self, streams: list[Stream]) -> int:
        """Start requests, as many as there is window for but at least one; return how many were."""
        connection = self.connection
        was_unused = not connection.streams
        started = connection.send_all(streams)
        if was_unused:
            self.used_at = self._loop.time()
            if not self.is_doubtful():
                self.waiting_since = self.used_at
            self._owner.watch()
        if not self._flush_due:
            self._flush_soon()
        return started

    def cancel(self, stream: Stream, reason: str) -> None:
        """Give up a request in flight."""
        self.given_up_at = self._loop.time()
        self.connection.cancel(stream, reason)
        self._flush_soon()

    def is_doubtful(self) -> bool:
        """Tell whether nothing was heard since a request was given up: the server still owes a sign of life."""
        return self.given_up_at > self.heard_at

    def excuse(self, gap_s: float, now: float) -> None:
        """Do not count *gap_s*, in which the loop did not run, as silence of the server."""
        self.heard_at = min(now, self.heard_at + gap_s)
        self.pinged_at = min(now, self.pinged_at + gap_s)
        self.waiting_since = min(now, self.waiting_since + gap_s)
        self.given_up_at = min(now, self.given_up_at + gap_s)
        if self.closing_since:
            self.closing_since = min(now, self.closing_since + gap_s)

    def ping(self, now: float) -> None:
        """Send a PING to see whether the server is alive."""
        self.pinged_at = now
        self.connection.ping(_PING)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what has gathered, unless the server does not read."""
        self._flush_due = False
        if self._transport is not None and not self._paused:
            output = self.connection.take_output()
            if output:
                self._transport.write(output)

    def close(self, reason: str) -> None:
        """Write what has gathered and close; `closed` follows."""
        if self._transport is None or self._close_reason:
            return
        self._close_reason = reason
        self.closing_since = self._loop.time()
        if not self.connection.failure:
            self.connection.say_goodbye()
        self.flush()
        self._transport.close()
        self._owner.watch()
        if self._paused:
            self._transport.abort()

    def abort(self, reason: str) -> None:
        """Close at once; `closed` follows."""
        if self._transport is not None:
            self._close_reason = self._close_reason or reason
            self._transport.abort()
