"""Bytes into frames: splitting, padding, and header blocks put together (RFC 9113, sections 4 and 6)."""

from typing import Final, Protocol

from . import frames
from .frames import (
    CONTINUATION,
    DATA,
    DEFAULT_FRAME_SIZE,
    END_HEADERS,
    HAS_PRIORITY,
    HEADER_BYTES,
    HEADERS,
    PADDED,
    PROTOCOL_ERROR,
    SETTINGS,
    ConnectionFault,
)

# A header block's encoded size may exceed its list's size only by silly encodings.
_LONGEST_BLOCK_BYTES: Final = 1 << 16
# A block may come in so many frames, and in one more for each few bytes that it has: empty and tiny ones are a flood.
_FREE_CONTINUATIONS: Final = 64
_BYTES_A_CONTINUATION: Final = 8
_ANY: Final = -1
_STREAM_ID: Final = 0x7FFF_FFFF


class FrameSink(Protocol):
    """A sink of the frames that were read."""

    def on_plain(self, data: bytes, at: int) -> int:
        """Handle the frames from *at* on that are plain parts of answers; return where the first begins that is not."""

    def on_data(self, stream_id: int, flags: int, payload: bytes, size: int) -> None:
        """Handle a DATA frame without its padding; *size* counts it."""

    def on_header_block(self, stream_id: int, flags: int, block: bytes) -> None:
        """Handle a whole header block with the flags of its HEADERS frame."""

    def on_control(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        """Handle any other frame."""


class FrameReader:
    """A reader that cuts what arrives into frames; keeps at most one unfinished frame and header block."""

    def __init__(self, sink: FrameSink) -> None:
        self._sink = sink
        self._rest = b""
        # The only kind of frame that may come next: SETTINGS at first, CONTINUATION inside a header block.
        self._only = SETTINGS
        self._block = bytearray()
        self._block_of = 0
        self._block_flags = 0
        self._continuations = 0

    def read(self, data: bytes) -> None:
        """Deliver every frame that is complete; ConnectionFault where the bytes are no proper frames."""
        if self._rest:
            data = self._rest + data
        end = len(data)
        unpack = frames.HEADER.unpack_from
        at = self._plain(data, 0)
        while end - at >= HEADER_BYTES:
            header: tuple[int, int, int] = unpack(data, at)
            length_and_kind, flags, stream_id = header
            length = length_and_kind >> 8
            kind = length_and_kind & 0xFF
            if length > DEFAULT_FRAME_SIZE:
                raise ConnectionFault(self._fault_code(), self._fault("frame above 16384 bytes"))
            start = at + HEADER_BYTES
            stop = start + length
            if stop > end:
                break
            at = stop
            if self._only != _ANY:
                self._must_be_next(kind)
            stream_id &= _STREAM_ID
            if kind == DATA:
                payload = data[start:stop]
                if flags & PADDED:
                    payload = frames.unpadded(payload, flags)
                self._sink.on_data(stream_id, flags, payload, length)
            elif kind == HEADERS:
                self._headers(flags, stream_id, data[start:stop])
            elif kind == CONTINUATION:
                self._continuation(flags, stream_id, data[start:stop])
            else:
                self._control(kind, flags, stream_id, data[start:stop])
            at = self._plain(data, at)
        self._rest = data[at:]

    def _plain(self, data: bytes, at: int) -> int:
        return self._sink.on_plain(data, at) if self._only == _ANY else at

    def _control(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        self._sink.on_control(kind, flags, stream_id, payload)
        if self._only == SETTINGS:
            self._only = _ANY

    def _must_be_next(self, kind: int) -> None:
        if kind != self._only:
            raise ConnectionFault(PROTOCOL_ERROR, self._fault("header block interrupted"))

    def _fault(self, fault: str) -> str:
        return "no SETTINGS first: this is not HTTP/2" if self._only == SETTINGS else fault

    def _fault_code(self) -> int:
        return PROTOCOL_ERROR if self._only == SETTINGS else frames.FRAME_SIZE_ERROR

    def _headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & (PADDED | HAS_PRIORITY):
            payload = frames.unpadded(payload, flags)
            if flags & HAS_PRIORITY:
                if len(payload) < 5:
                    raise ConnectionFault(frames.FRAME_SIZE_ERROR, "HEADERS too short for its priority")
                payload = payload[5:]
        if flags & END_HEADERS:
            self._sink.on_header_block(stream_id, flags, payload)
        else:
            self._only = CONTINUATION
            self._block = bytearray(payload)
            self._block_of = stream_id
            self._block_flags = flags
            self._continuations = 0

    def _continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id != self._block_of or self._only != CONTINUATION:
            raise ConnectionFault(PROTOCOL_ERROR, "CONTINUATION of no header block")
        self._block += payload
        self._continuations += 1
        size = len(self._block)
        if size > _LONGEST_BLOCK_BYTES or self._continuations > _FREE_CONTINUATIONS + size // _BYTES_A_CONTINUATION:
            raise ConnectionFault(frames.ENHANCE_YOUR_CALM, "endless header block")
        if flags & END_HEADERS:
            self._only = _ANY
            block = bytes(self._block)
            self._block = bytearray()
            self._sink.on_header_block(stream_id, self._block_flags, block)
