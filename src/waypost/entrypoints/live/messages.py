"""What is said on a live connection: JSON, as a frame of a web socket or as an event of a stream."""

from __future__ import annotations

import base64
import hashlib
from functools import cached_property
from typing import Any, Final

import msgspec
from wsproto.frame_protocol import FrameProtocol

from waypost.entrypoints.rest import cursors

_encode = msgspec.json.Encoder().encode
_frames: Final = FrameProtocol(client=False, extensions=[])
"""Makes whole frames of the server, of which none is masked: it keeps nothing between two."""
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

    def __init__(self, kind: str, place: int | None = None, **fields: Any) -> None:
        """Create it; *place* is where the reader goes on from, once it has this."""
        cursor = {} if place is None else {"cursor": cursors.of_place(place)}
        self._id = cursor.get("cursor")
        self._text = _encode({"type": kind, **cursor, **fields})

    @cached_property
    def frame(self) -> bytes:
        """The message as a text frame (RFC 6455, section 5.6)."""
        return bytes(_frames.send_data(self._text.decode(), fin=True))

    @cached_property
    def event(self) -> bytes:
        """The message as an event (HTML, section 9.2), named by its cursor."""
        named = b"" if self._id is None else b"id: %s\n" % self._id.encode()
        return b"%sdata: %s\n\n" % (named, self._text)


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
