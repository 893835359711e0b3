"""A bare HTTP/2 client on the h2 library that shows every frame's event, to see what the lab does on the wire."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, Event, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from hyperframe.frame import Frame, GoAwayFrame, HeadersFrame

E = TypeVar("E", bound=Event)


class Wire:
    """One connection. Events are kept; `until` waits for one that has come or is to come."""

    def __init__(self) -> None:
        self.h2 = H2Connection(
            H2Configuration(header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False)
        )
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.events: list[Event] = []
        self.answered_after_goaway: list[int] = []
        self._rest = b""
        self.closed = False

    @classmethod
    async def dial(
        cls, url: str, directory: Path, *, alpn: bool = True, context: ssl.SSLContext | None = None
    ) -> "Wire":
        """Connect and start HTTP/2."""
        wire = cls()
        context = context or ssl.create_default_context(cafile=directory / "ca.pem")
        if alpn:
            context.set_alpn_protocols(["h2"])
        host, _, port = url.removeprefix("https://").partition(":")
        wire.reader, wire.writer = await asyncio.open_connection(host, int(port), ssl=context)
        wire.h2.initiate_connection()
        wire.flush()
        return wire

    def flush(self) -> None:
        """Send what h2 has ready."""
        self.writer.write(self.h2.data_to_send())

    def send(self, path: str, headers: dict[str, Any], body: bytes, *, authority: str | None = "127.0.0.1") -> int:
        """Start a request and finish it; the stream's id comes back."""
        return self.send_all([(path, headers, body)], authority=authority)[0]

    def send_all(
        self, requests: list[tuple[str, dict[str, Any], bytes]], *, authority: str | None = "127.0.0.1"
    ) -> list[int]:
        """Put several requests into one write."""
        ids = []
        for path, headers, body in requests:
            stream_id = self.h2.get_next_available_stream_id()
            pseudo = [(":method", "POST"), (":scheme", "https"), (":path", path)]
            pseudo += [(":authority", authority)] if authority else []
            self.h2.send_headers(stream_id, [*pseudo, *headers.items()])
            self.h2.send_data(stream_id, body, end_stream=True)
            ids.append(stream_id)
        self.flush()
        return ids

    async def until(self, kind: type[E], holds: Callable[[E], bool] = lambda _: True) -> E:
        """Wait for an event. Raises ConnectionError when the connection ends first."""
        seen = 0
        while True:
            for event in self.events[seen:]:
                if isinstance(event, kind) and holds(event):
                    return event
            seen = len(self.events)
            await self._read()

    async def answer(self, stream_id: int) -> int:
        """Wait until a stream has ended; its status, or minus its reset code."""
        end = await self.until(Event, lambda e: isinstance(e, StreamEnded | StreamReset) and e.stream_id == stream_id)
        if isinstance(end, StreamReset):
            return -int(end.error_code)
        response = await self.until(ResponseReceived, lambda e: e.stream_id == stream_id)
        return next(int(value) for name, value in response.headers if str(name) == ":status")

    async def end(self) -> None:
        """Wait until the lab has closed the connection."""
        while not self.closed:
            try:
                await self._read()
            except ConnectionError:
                return

    async def close(self) -> None:
        """Close."""
        self.writer.transport.abort()

    async def _read(self) -> None:
        data = await self.reader.read(65536)
        if not data:
            self.closed = True
            raise ConnectionError("closed by the lab")
        if any(isinstance(event, ConnectionTerminated) for event in self.events):
            self._read_frames(data)
            return
        try:
            self.events += self.h2.receive_data(data)
        except ProtocolError:  # h2 takes no frame after a GOAWAY, not even in the same read
            self._read_frames(data)
        self.flush()

    def _read_frames(self, data: bytes) -> None:
        """Read GOAWAY and answers by hand."""
        self._rest += data
        while len(self._rest) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self._rest[:9]))
            if len(self._rest) < 9 + length:
                return
            frame.parse_body(memoryview(self._rest[9 : 9 + length]))
            self._rest = self._rest[9 + length :]
            if isinstance(frame, HeadersFrame):
                self.answered_after_goaway.append(frame.stream_id)
            if isinstance(frame, GoAwayFrame):
                self.events.append(_goaway(frame))


def _goaway(frame: GoAwayFrame) -> ConnectionTerminated:
    event = ConnectionTerminated()
    event.error_code = ErrorCodes(frame.error_code)
    event.last_stream_id = frame.last_stream_id
    event.additional_data = frame.additional_data
    return event
