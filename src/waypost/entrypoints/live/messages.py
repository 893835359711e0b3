"""What is said on a live connection: JSON, as a frame of a web socket or as an event of a stream."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec
from wsproto.frame_protocol import FrameProtocol

from waypost.entrypoints.rest import cursors

_encode = msgspec.json.Encoder().encode
_frames: Final = FrameProtocol(client=False, extensions=[])
"""Makes whole frames of the server, of which none is masked: it keeps nothing between two."""
_SHORT: Final = 125
_LONG: Final = 0xFFFF
"""The longest payloads whose length has no bytes of its own, and two (RFC 6455, section 5.2)."""
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455, section 1.3."""

PING_FRAME: Final = bytes(_frames.ping(b""))
PING_EVENT: Final = b": ping\n\n"
EVENT_STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n"
    b"x-accel-buffering: no\r\nconnection: close\r\n"
)


class LiveMessage:
    """A message, encoded once for all who get it."""

    __slots__ = ("_event", "_frame", "_id", "_text")

    def __init__(self, kind: str, place: int | None = None, **fields: Any) -> None:
        """Create it; *place* is where the reader goes on from, once it has this."""
        cursor = {} if place is None else {"cursor": cursors.of_place(place)}
        self._id = cursor.get("cursor")
        self._text = _encode({"type": kind, **cursor, **fields})
        self._frame = self._event = b""

    @property
    def frame(self) -> bytes:
        """The message as a text frame (RFC 6455, section 5.6)."""
        if not self._frame:
            self._frame = _text_frame(self._text)
        return self._frame

    @property
    def event(self) -> bytes:
        """The message as an event (HTML, section 9.2), named by its cursor."""
        if not self._event:
            named = b"" if self._id is None else b"id: %s\n" % self._id.encode()
            self._event = b"%sdata: %s\n\n" % (named, self._text)
        return self._event


def _text_frame(text: bytes) -> bytes:
    """Make a whole frame that is not masked, as a server sends it (RFC 6455, section 5.2)."""
    length = len(text)
    if length <= _SHORT:
        return b"\x81%c%b" % (length, text)
    if length <= _LONG:
        return b"\x81\x7e%b%b" % (length.to_bytes(2, "big"), text)
    return b"\x81\x7f%b%b" % (length.to_bytes(8, "big"), text)


def close_frame(code: int, reason: str) -> bytes:
    """Make a close frame (RFC 6455, section 5.5.1)."""
    return bytes(_frames.close(code, reason))


def pong_frame(payload: bytes) -> bytes:
    """Make the answer to a ping."""
    return bytes(_frames.pong(payload))


def accepting_head(key: str) -> bytes:
    """Make the head that accepts a web socket whose client gave *key*, but for its empty line."""
    accept = base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-accept: %s\r\n" % accept
    )
