"""One HTTP/2 server connection, on the h2 library, with every way of misbehaving the fault script can order."""

import asyncio
from typing import assert_never, cast

import msgspec
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingReceived,
    RequestReceived,
    SettingsAcknowledged,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

from waypost.lab.exchange import Answer
from waypost.lab.faults import BlackHole, Goaway, Rst, SettingsChange, SlowReader
from waypost.lab.framing import LenientHttp2, WireRules, malformed, read_request
from waypost.lab.reception import Drop, Reception, Reply

_MAX_BODY_BYTES = 256 * 1024
_CONNECTION_WINDOW = 2**24
_LAST_POSSIBLE_STREAM = 2**31 - 1
_SWEEP_EVERY = 64


class _Incoming(msgspec.Struct):
    """A request whose body is still arriving, or that waits for its answer."""

    headers: list[tuple[bytes, bytes]]
    body: bytearray
    ended: bool = False


class Http2Connection(asyncio.Protocol):
    """Serves one connection: collects requests, hands each to the reception, does what it replies."""

    def __init__(self, reception: Reception, rules: WireRules) -> None:
        self._reception, self._rules = reception, rules
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, _Incoming] = {}
        self._unsent: dict[int, bytes] = {}
        self._held: list[int] = []
        self._going: Goaway | None = None
        self._last_allowed: int | None = None
        self._last_processed = 0
        self._limit = self._acknowledged_limit = rules.max_streams
        self._limit_acknowledged = False
        self._pings = 0
        self._received = 0
        self._silent = False
        self._timers: list[asyncio.TimerHandle] = []

    # -- the transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connection = self._reception.connect("h2")
        self._connection.limit_streams = self._limit_streams
        self._last_request_at = self._loop.time()
        self._h2 = LenientHttp2(self._rules.max_streams)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW)
        self._flush()
        if self._rules.needs_alpn and transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            self._violation("no ALPN")
            self._close_with(ErrorCodes.PROTOCOL_ERROR, b"")
        if self._rules.max_age_s is not None:
            self._timers.append(self._loop.call_later(self._rules.max_age_s, self._announce_end, "max_age"))
        if self._rules.idle_s is not None:
            self._timers.append(self._loop.call_later(self._rules.idle_s, self._end_when_idle))

    def data_received(self, data: bytes) -> None:
        if self._silent:
            return
        try:
            events = self._h2.receive_data(data)
        except ProtocolError as error:
            self._violation(type(error).__name__)
            self._flush()
            self._transport.close()
            return
        for event in events:
            self._take(event)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in self._timers:
            timer.cancel()
        self._open.clear()
        self._reception.disconnect(self._connection)

    def pause_writing(self) -> None:
        """Read no more from a client that does not take its answers."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    # -- what the client does

    def _take(self, event: Event) -> None:  # noqa: C901 - one flat case per frame kind
        match event:
            case RequestReceived():
                self._begin(event.stream_id, event.headers)
            case DataReceived():
                incoming = self._open.get(event.stream_id)
                if incoming is not None and len(incoming.body) < _MAX_BODY_BYTES:
                    incoming.body += event.data
                if event.flow_controlled_length:
                    self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case StreamEnded():
                incoming = self._open.get(event.stream_id)
                if incoming is not None:
                    incoming.ended = True
                    self._complete(event.stream_id)
            case StreamReset():
                self._open.pop(event.stream_id, None)
                self._unsent.pop(event.stream_id, None)
                self._close_when_drained()
            case SettingsAcknowledged():
                if SettingCodes.MAX_CONCURRENT_STREAMS in event.changed_settings or not self._limit_acknowledged:
                    self._acknowledged_limit, self._limit_acknowledged = self._limit, True
            case PingReceived():
                self._count_ping()
            case WindowUpdated():
                for stream_id in tuple(self._unsent):
                    self._send_body(stream_id, self._unsent.pop(stream_id))
            case ConnectionTerminated():
                self._transport.close()
            case _:
                pass

    def _begin(self, stream_id: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._pings = 0
        self._received += 1
        self._last_request_at = self._loop.time()
        if self._received % _SWEEP_EVERY == 0:
            self._h2.sweep()
        if self._last_allowed is not None and stream_id > self._last_allowed:
            return
        if len(self._open) >= self._limit:
            if self._limit_acknowledged and len(self._open) >= self._acknowledged_limit:
                self._violation("too many streams")
            self._h2.reset_stream(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        if why := malformed(headers):
            self._violation(why)
            self._h2.reset_stream(stream_id, ErrorCodes.PROTOCOL_ERROR)
            return
        self._open[stream_id] = _Incoming(headers, bytearray())
        self._connection.peak_streams = max(self._connection.peak_streams, len(self._open))

    def _complete(self, stream_id: int) -> None:
        if self._going is not None:
            self._held.append(stream_id)
            return
        self._process(stream_id, scripted=self._last_allowed is None)

    def _process(self, stream_id: int, *, scripted: bool) -> None:
        incoming = self._open[stream_id]
        reply = self._reception.receive(
            read_request(incoming.headers, bytes(incoming.body), self._connection), scripted=scripted
        )
        for change in reply.first:
            self._change(change)
        if not isinstance(reply.instead, Goaway):
            self._last_processed = max(self._last_processed, stream_id)
        if reply.delay_s:
            self._loop.call_later(reply.delay_s, self._carry_out_late, stream_id, reply)
        else:
            self._carry_out(stream_id, reply)

    # -- what the lab does

    def _carry_out_late(self, stream_id: int, reply: Reply) -> None:
        if stream_id in self._open and not self._transport.is_closing():
            self._carry_out(stream_id, reply)
            self._flush()

    def _carry_out(self, stream_id: int, reply: Reply) -> None:
        if reply.answer is not None:
            self._answer(stream_id, reply.answer)
            return
        match reply.instead:
            case Goaway() as fault:
                self._start_going(stream_id, fault)
            case Rst(code):
                del self._open[stream_id]
                self._h2.reset_stream(stream_id, code)
            case BlackHole(scope):
                if scope == "connection":
                    self._silent = True
                    self._transport.pause_reading()
            case Drop():
                self._transport.abort()
            case None:
                raise ValueError("a reply without an answer must say what happens instead")
            case _ as never:
                assert_never(never)

    def _answer(self, stream_id: int, answer: Answer) -> None:
        del self._open[stream_id]
        headers = [(b":status", str(answer.status).encode())]
        headers += [(name.encode(), value.encode()) for name, value in answer.headers]
        self._h2.send_headers(stream_id, headers, end_stream=not answer.body)
        if answer.body:
            self._send_body(stream_id, answer.body)
        if self._last_allowed is not None:
            self._close_when_drained()

    def _send_body(self, stream_id: int, body: bytes) -> None:
        """Send as much as the client's windows allow; the rest waits for WINDOW_UPDATE."""
        while body:
            room = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
            if room <= 0:
                self._unsent[stream_id] = body
                return
            self._h2.send_data(stream_id, body[:room], end_stream=len(body) <= room)
            body = body[room:]

    def _change(self, change: SettingsChange | SlowReader) -> None:
        if isinstance(change, SlowReader):
            self._transport.pause_reading()
            self._timers.append(self._loop.call_later(change.pause_ms / 1000, self._transport.resume_reading))
            return
        if change.max_concurrent_streams is not None:
            self._limit = change.max_concurrent_streams
        values = {
            SettingCodes.MAX_CONCURRENT_STREAMS: change.max_concurrent_streams,
            SettingCodes.INITIAL_WINDOW_SIZE: change.initial_window_size,
            SettingCodes.MAX_FRAME_SIZE: change.max_frame_size,
            SettingCodes.HEADER_TABLE_SIZE: change.header_table_size,
            SettingCodes.MAX_HEADER_LIST_SIZE: change.max_header_list_size,
        }
        self._h2.update_settings({code: value for code, value in values.items() if value is not None})

    def _limit_streams(self, limit: int) -> None:
        if limit != self._limit:
            self._change(SettingsChange(max_concurrent_streams=limit))

    def _start_going(self, stream_id: int, fault: Goaway) -> None:
        self._going = fault
        self._held = [stream_id]
        if fault.graceful:
            self._send_goaway(_LAST_POSSIBLE_STREAM, fault)
        if fault.hold_ms:
            self._timers.append(self._loop.call_later(fault.hold_ms / 1000, self._finish_going))
        else:
            self._finish_going()

    def _finish_going(self) -> None:
        """Send the GOAWAY that counts; process what it covers, forget what it does not."""
        fault, held = self._going, sorted(stream_id for stream_id in self._held if stream_id in self._open)
        if fault is None or self._transport.is_closing():
            return
        covered = {"all": len(held), "none": 0, "half": len(held) // 2}[fault.last_stream]
        last = max(held[:covered], default=0)
        self._last_allowed = max(last, self._last_processed)
        self._going, self._held = None, []
        self._send_goaway(self._last_allowed, fault)
        for stream_id in [number for number in self._open if number > self._last_allowed]:
            del self._open[stream_id]
        for stream_id in held:
            if stream_id <= self._last_allowed:
                self._process(stream_id, scripted=False)
        self._close_when_drained()

    def _send_goaway(self, last_stream_id: int, fault: Goaway) -> None:
        debug = msgspec.json.encode({"reason": fault.reason}) if fault.reason else b""
        self._flush()
        frame = GoAwayFrame(0, last_stream_id=last_stream_id, error_code=fault.code, additional_data=debug)
        self._transport.write(frame.serialize())

    def _close_when_drained(self) -> None:
        if self._last_allowed is not None and not self._open and not self._unsent:
            self._flush()
            self._transport.close()

    def _close_with(self, code: ErrorCodes, debug: bytes) -> None:
        self._h2.close_connection(code, debug)
        self._flush()
        self._transport.close()

    def _announce_end(self, debug: str) -> None:
        """End the connection in good order, as FCM does: what is in flight is still answered."""
        if self._last_allowed is None:
            self._flush()
            self._last_allowed = max(self._open, default=self._last_processed)
            frame = GoAwayFrame(0, last_stream_id=self._last_allowed, additional_data=debug.encode())
            self._transport.write(frame.serialize())
            self._close_when_drained()

    def _end_when_idle(self) -> None:
        assert self._rules.idle_s is not None
        quiet_s = self._loop.time() - self._last_request_at
        if quiet_s >= self._rules.idle_s and not self._open:
            self._announce_end("session_timeout")
            return
        wait_s = max(self._rules.idle_s - quiet_s, 0.01)
        self._timers.append(self._loop.call_later(wait_s, self._end_when_idle))

    def _count_ping(self) -> None:
        self._pings += 1
        if self._rules.max_unasked_pings is not None and self._pings >= self._rules.max_unasked_pings:
            self._violation("too many pings")
            self._close_with(ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings")

    def _violation(self, name: str) -> None:
        self._reception.records.violation(self._connection, name)

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._transport.write(data)
