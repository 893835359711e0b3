"""A stand-in for APNs, FCM and push services: ``python -m waypost.bench.gateway PEM``; counts, checks nothing.

PEM holds certificate and key. Prints ``{"port": …, "admin": …}``: TLS, and plain HTTP for the bench. A token that
begins with ``dead`` is gone; one that begins with ``fade`` is throttled once for each notification. The text after
``"mark":"`` in a body numbers the notification, or that after ``No. ``: when it came is kept for ``/marks``. Each
answer has an id of its own, as the providers' have: no two heads are alike. Admin: ``/counts``, ``/marks``
(pairs of u64, little-endian: mark, µs since 1970), ``/forget`` (the marks), ``/set?<class>=<ms>`` (how long an answer
of apns, fcm or webpush takes), ``/storm?seconds=<s>`` (everything is throttled, with that Retry-After; 0 ends it).
It speaks HTTP/2 as far as Waypost's own client asks.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import ssl
import struct
import sys
import time
from collections import deque
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import uvloop

from waypost.http2 import encode_headers, frames
from waypost.http2.hpack import decode_headers

CLASSES = ("apns", "fcm", "webpush")
GRANT = b'{"access_token": "ya29.bench", "expires_in": 3599, "token_type": "Bearer"}'
STREAMS = 1000
WINDOW = 1 << 20
_MARK = re.compile(rb'"mark":"(\d+)"')
_MARK_IN_TEXT = re.compile(rb"No\. (\d+)")
_TOKEN = re.compile(rb'"token":"([^"]+)"')
_LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


def _fcm_error(code: int, status: str, word: str) -> bytes:
    detail = {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": word}
    return json.dumps({"error": {"code": code, "message": "bench", "status": status, "details": [detail]}}).encode()


_ANSWERS = {
    ("apns", "accepted"): (200, b""),
    ("apns", "dead"): (410, b'{"reason": "Unregistered", "timestamp": 4102444800000}'),
    ("apns", "throttled"): (429, b'{"reason": "TooManyRequests"}'),
    ("fcm", "accepted"): (200, b'{"name": "projects/bench/messages/0:1500415314455276%%%016x"}'),
    ("fcm", "dead"): (404, _fcm_error(404, "NOT_FOUND", "UNREGISTERED")),
    ("fcm", "throttled"): (429, _fcm_error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")),
    ("webpush", "accepted"): (201, b""),
    ("webpush", "dead"): (410, b""),
    ("webpush", "throttled"): (429, b""),
}


THROTTLED = 429


def _head(status: int, retry_after_s: int = 1) -> bytes:
    late = [(b"retry-after", str(retry_after_s).encode())] if status == THROTTLED else []
    return encode_headers([(b":status", str(status).encode()), *late])


def _literal(name: bytes, value: bytes, length: int) -> bytes:
    """Return a field that the client does not keep (RFC 7541, 6.2.2), whose value is so long once it is filled in."""
    return bytes([0, len(name)]) + name + bytes([length]) + value


_OWN_ID = {
    "apns": _literal(b"apns-id", b"EABEAE54-14A8-41E5-B60B-%012X", 36),
    "webpush": _literal(b"location", b"/m/%012x", 15),
}
_HEADS = {status: _head(status) for status in (200, 201, 404, 410, 429)}


def _first(pattern: re.Pattern[bytes], body: bytes) -> bytes:
    found = pattern.search(body)
    return found[1] if found else b""


class ReceivedCount:
    """The counts of what has come, over all connections."""

    def __init__(self) -> None:
        self.latency_s = dict.fromkeys(CLASSES, 0.0)
        self.storm_s = 0
        self.marks: list[tuple[int, int]] = []
        self._answers = itertools.count(1)
        self._counts = {name: dict.fromkeys(("accepted", "dead", "throttled"), 0) for name in CLASSES}
        self._deliveries: dict[str, set[tuple[bytes, bytes]]] = {name: set() for name in CLASSES}
        self._fading: set[tuple[bytes, bytes]] = set()

    def take(self, path: bytes, body: bytes) -> tuple[str, int, bytes]:
        """Return the class, status and body of the answer to a push."""
        if path.startswith(b"/3/device/"):
            name, token = "apns", path[10:]
        elif path.endswith(b"/messages:send"):
            name, token = "fcm", _first(_TOKEN, body)
        else:
            name, token = "webpush", path.rpartition(b"/")[2]
        mark = _first(_MARK, body) or _first(_MARK_IN_TEXT, body)
        verdict = self._verdict(token, mark)
        self._counts[name][verdict] += 1
        if verdict == "accepted" and mark:
            self._deliveries[name].add((token, mark))
            self.marks.append((int(mark), time.time_ns() // 1000))
        status, text = _ANSWERS[name, verdict]
        if name == "fcm" and verdict == "accepted":
            text %= next(self._answers)
        return name, status, text

    def head(self, name: str, status: int) -> bytes:
        """Return the fields of an answer."""
        if self.storm_s and status == THROTTLED:
            return _head(status, self.storm_s)
        return _HEADS[status] + _OWN_ID[name] % next(self._answers) if name in _OWN_ID else _HEADS[status]

    def _verdict(self, token: bytes, mark: bytes) -> str:
        if self.storm_s:
            return "throttled"
        if token.startswith(b"dead"):
            return "dead"
        if token.startswith(b"fade") and (token, mark) not in self._fading:
            self._fading.add((token, mark))
            return "throttled"
        return "accepted"

    def admin(self, target: str) -> bytes:
        """Answer what the bench asks for."""
        asked = urlsplit(target)
        match asked.path:
            case "/counts":
                deliveries = {name: {"deliveries": len(seen)} for name, seen in self._deliveries.items()}
                return json.dumps({name: self._counts[name] | deliveries[name] for name in CLASSES}).encode()
            case "/marks":
                return b"".join([struct.pack("<QQ", *each) for each in self.marks])
            case "/forget":
                self.marks.clear()
            case "/set":
                self.latency_s |= {name: int(ms) / 1000 for name, ms in parse_qsl(asked.query)}
            case "/storm":
                self.storm_s = int(dict(parse_qsl(asked.query))["seconds"])
            case unknown:
                raise ValueError(f"the bench asks for {unknown}")
        return b""


class WaypostConnection(asyncio.Protocol):
    """A connection of Waypost's; one that does not begin as HTTP/2 asks for an OAuth grant."""

    def __init__(self, reception: ReceivedCount) -> None:
        self._reception = reception
        self._loop = asyncio.get_running_loop()
        self._unread = b""
        self._begun = False
        self._asked: dict[int, tuple[bytes, bytes]] = {}
        self._window = frames.DEFAULT_WINDOW
        self._unsent: deque[tuple[int, bytes]] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance

    def data_received(self, data: bytes) -> None:
        data = self._unread + data
        at = 0
        if not self._begun:
            if not data.startswith(frames.PREFACE[: len(data)]):
                return self._grant(data)
            if len(data) < len(frames.PREFACE):
                self._unread = data
                return None
            self._begin()
            at = len(frames.PREFACE)
        out: list[bytes] = []
        while len(data) - at >= frames.HEADER_BYTES:
            length_and_kind, flags, stream = frames.HEADER.unpack_from(data, at)
            end = at + frames.HEADER_BYTES + (length_and_kind >> 8)
            if end > len(data):
                break
            self._frame(length_and_kind & 0xFF, flags, stream, data[at + frames.HEADER_BYTES : end], out)
            at = end
        self._unread = data[at:]
        self._transport.write(b"".join(out))
        return None

    def _begin(self) -> None:
        self._begun = True
        named = [(frames.HEADER_TABLE_SIZE, 0), (frames.MAX_CONCURRENT_STREAMS, STREAMS)]
        values = [*named, (frames.INITIAL_WINDOW_SIZE, WINDOW)]
        self._transport.write(frames.settings(values) + frames.window_update(0, WINDOW))

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes, out: list[bytes]) -> None:
        if kind == frames.HEADERS:
            path = dict(decode_headers(payload, 1 << 16))[b":path"]
            self._asked[stream] = (path, b"")
        elif kind == frames.DATA:
            if payload:
                out.append(frames.window_update(0, len(payload)))
            if stream in self._asked:
                path, body = self._asked[stream]
                self._asked[stream] = (path, body + payload)
        elif kind == frames.SETTINGS and not flags & frames.ACK:
            out.append(frames.SETTINGS_ACK)
        elif kind == frames.PING and not flags & frames.ACK:
            out.append(frames.ping(payload, frames.ACK))
        elif kind == frames.RST_STREAM:
            self._asked.pop(stream, None)
        elif kind == frames.WINDOW_UPDATE and not stream:
            self._window += frames.u32(payload)
            self._send_what_fits(out)
        if kind in (frames.HEADERS, frames.DATA) and flags & frames.END_STREAM and stream in self._asked:
            self._answer(stream, *self._asked.pop(stream), out)

    def _answer(self, stream: int, path: bytes, body: bytes, out: list[bytes]) -> None:
        name, status, text = self._reception.take(path, body)
        head, flags = self._reception.head(name, status), frames.END_HEADERS | (0 if text else frames.END_STREAM)
        answer = frames.frame_header(len(head), frames.HEADERS, flags, stream) + head
        if latency_s := self._reception.latency_s[name]:
            self._loop.call_later(latency_s, self._send_late, stream, answer, text)
        else:
            self._send(stream, answer, text, out)

    def _send_late(self, stream: int, answer: bytes, text: bytes) -> None:
        out: list[bytes] = []
        self._send(stream, answer, text, out)
        self._transport.write(b"".join(out))

    def _send(self, stream: int, answer: bytes, text: bytes, out: list[bytes]) -> None:
        out.append(answer)
        if text:
            self._unsent.append((stream, text))
            self._send_what_fits(out)

    def _send_what_fits(self, out: list[bytes]) -> None:
        while self._unsent and len(self._unsent[0][1]) <= self._window:
            stream, text = self._unsent.popleft()
            self._window -= len(text)
            out.append(frames.frame_header(len(text), frames.DATA, frames.END_STREAM, stream) + text)

    def _grant(self, request: bytes) -> None:
        head, end, body = request.partition(b"\r\n\r\n")
        if not end or len(body) < int(_first(_LENGTH, head) or 0):
            self._unread = request
            return
        self._transport.write(_http1(GRANT, "application/json"))
        self._unread = b""


def _http1(body: bytes, media: str = "application/octet-stream") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def _serve(pem_file: str) -> None:
    reception, loop = ReceivedCount(), asyncio.get_running_loop()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem_file)
    tls.set_alpn_protocols(["h2", "http/1.1"])

    async def admin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            writer.write(_http1(reception.admin(head.split(b" ", 2)[1].decode())))

    pushes = await loop.create_server(lambda: WaypostConnection(reception), "127.0.0.1", 0, ssl=tls)
    orders = await asyncio.start_server(admin, "127.0.0.1", 0)
    port, admin_port = (server.sockets[0].getsockname()[1] for server in (pushes, orders))
    print(json.dumps({"port": port, "admin": admin_port}), flush=True)
    await asyncio.gather(pushes.serve_forever(), orders.serve_forever())


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
