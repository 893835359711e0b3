"""Live connections: a small object each, since most of them say nothing for most of the time."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, Protocol

from wsproto.frame_protocol import Frame, FrameDecoder, Opcode, ParseFailed

from waypost.domain.ids import AppId, UserId
from waypost.entrypoints.live.messages import PING_EVENT, PING_FRAME, LiveMessage, close_frame, pong_frame
from waypost.ports.feed import Mark

SAID_LIMIT: Final = 4096
"""The most bytes of a frame that a client sends: it has nothing to say but pongs."""
NORMAL: Final = 1000
AWAY: Final = 1001
REFUSED: Final = 1002
TOO_MUCH: Final = 1009
RESTARTS: Final = 1012
"""Close codes (RFC 6455, section 7.4.1, and its registry)."""


BEGINS_NOW: Final = -(1 << 63)
"""The place of who is told of nothing that was there before."""


class Reader(NamedTuple):
    """The user whose feed a connection follows."""

    app: AppId
    user_id: UserId


class Holder(Protocol):
    """Holds connections, and reads for them."""

    def read_for(self, connection: Connection) -> None:
        """Read what *connection* has missed."""
        ...

    def left(self, connection: Connection) -> None:
        """Forget a connection."""
        ...


class Connection(asyncio.Protocol):
    """A connection past its handshake: it is told what is new in the feed of one user."""

    __slots__ = (
        "_holder",
        "address",
        "ends_s",
        "is_alive",
        "is_greeted",
        "is_missing",
        "is_paused",
        "is_reading",
        "missed_mark",
        "place",
        "reader",
        "transport",
    )

    def __init__(self, holder: Holder, reader: Reader, address: str, place: int | None, ends_s: float) -> None:
        self._holder = holder
        self.reader = reader
        self.address = address
        self.place = BEGINS_NOW if place is None else place
        """The place of the last entry that was written."""
        self.ends_s = ends_s
        """When it must end, on the clock that never goes back."""
        self.is_greeted = False
        self.is_missing = True
        """Whether there may be entries above its place that it was not told of."""
        self.is_reading = False
        """Whether these are being read."""
        self.missed_mark: Mark | None = None
        """The last mark that it was not told of, since it was behind."""
        self.is_paused = False
        self.is_alive = True
        self.transport: asyncio.Transport

    def take(self, place: int, message: LiveMessage) -> None:
        """Write the entry at *place*, unless entries before it are missing, or the client is behind."""
        if self.is_reading or self.is_paused or self.is_missing:
            self.is_missing = True
        elif place > self.place:
            self.place = place
            self.tell(message)

    def write(self, data: bytes) -> None:
        """Write *data*, unless the connection is closing: uvloop raises an error where asyncio is silent."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def tell(self, message: LiveMessage) -> None:
        """Write a message."""
        raise NotImplementedError

    def ping(self) -> None:
        """Find out whether the client is there."""
        raise NotImplementedError

    def end(self, code: int, reason: str) -> None:
        """Say why, and close."""
        self.transport.close()

    def pause_writing(self) -> None:
        """Tell nothing more until the client has read what it was told."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """Go on with what came meanwhile."""
        self.is_paused = False
        if self.is_missing:
            self._holder.read_for(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Be forgotten."""
        self._holder.left(self)


class WebSocket(Connection):
    """A web socket (RFC 6455)."""

    __slots__ = ("_decoder",)

    def __init__(self, holder: Holder, reader: Reader, address: str, place: int | None, ends_s: float) -> None:
        super().__init__(holder, reader, address, place, ends_s)
        self._decoder: FrameDecoder | None = None
        """Kept only while a frame has not come in whole."""

    def tell(self, message: LiveMessage) -> None:
        """Write a text frame."""
        self.write(message.frame)

    def ping(self) -> None:
        """Write a ping frame."""
        self.write(PING_FRAME)

    def end(self, code: int, reason: str) -> None:
        """Write a close frame, and close."""
        self.write(close_frame(code, reason))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Take frames of the client."""
        self.is_alive = True
        decoder = self._decoder or FrameDecoder(client=False)
        decoder.receive_bytes(data)
        try:
            while (frame := decoder.process_buffer()) is not None:
                self._heed(frame)
                if self.transport.is_closing():
                    return
        except ParseFailed:
            self.end(REFUSED, "not a frame of a client")
            return
        left = len(decoder.buffer)
        if left > SAID_LIMIT or (decoder.header is not None and decoder.header.payload_len > SAID_LIMIT):
            self.end(TOO_MUCH, "clients have nothing to say here")
            return
        self._decoder = decoder if left or decoder.header is not None else None

    def _heed(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PING and isinstance(frame.payload, bytes):
            if not self.is_paused:  # whoever reads no pongs is not sent more of them
                self.write(pong_frame(frame.payload))
        elif frame.opcode is Opcode.CLOSE:
            self.end(NORMAL, "")


class EventStream(Connection):
    """An event stream (HTML, section 9.2), for clients behind proxies that let no web socket through."""

    __slots__ = ()

    def tell(self, message: LiveMessage) -> None:
        """Write an event."""
        self.write(message.event)

    def ping(self) -> None:
        """Write a comment; a client that is gone is noticed by the system as it is not taken."""
        self.is_alive = True
        self.write(PING_EVENT)

    def data_received(self, data: bytes) -> None:
        """Take nothing: a second request cannot be answered any more."""
        self.transport.close()
