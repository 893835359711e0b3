"""One HTTP/2 server connection, on the h2 library, with every way of misbehaving the fault script can order."""

import asyncio
import ssl
from functools import partial
from typing import assert_never, cast

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

from waypost.lab.departure import LAST_POSSIBLE_STREAM, Departure, debug_data, goaway
from waypost.lab.exchange import GatewayAnswer
from waypost.lab.faults import BlackHole, Goaway, Rst, SettingsChange, SlowReader
from waypost.lab.framing import IncomingRequest, LenientHttp2, WireRules, malformed, setting_values
from waypost.lab.lifetime import Lifetime
from waypost.lab.reception import Drop, Reception, Reply

_MAX_BODY_BYTES = 256 * 1024
_CONNECTION_WINDOW = 2**24
_SWEEP_EVERY = 64


class Http2Connection(asyncio.Protocol):
    """A connection that collects requests, hands each to the reception, and does what it replies."""

    def __init__(self, reception: Reception, rules: WireRules) -> None:
        self._reception, self._rules = reception, rules
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, IncomingRequest] = {}
        self._unsent: dict[int, bytes] = {}
        self._departure = Departure()
        self._limit = self._acknowledged_limit = rules.max_streams
        self._limit_acknowledged = False
        self._received = 0
        self._silent = self._flushes_soon = False
        self._hole: BlackHole | None = None
        self._timers: list[asyncio.TimerHandle] = []

    # -- the transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        tls = cast(ssl.SSLObject, transport.get_extra_info("ssl_object"))
        self._connection = self._reception.connect("h2", certificate=tls.getpeercert(binary_form=True))
        self._connection.limit_streams = self._limit_streams
        self._lifetime = Lifetime(self._rules, busy=lambda: bool(self._open), end=self._announce_end)
        if self._connection.certificate is not None:
            self._limit = self._acknowledged_limit = self._rules.max_streams_with_certificate
        self._h2 = LenientHttp2(self._limit)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW)
        self._flush()
        if self._rules.needs_alpn and tls.selected_alpn_protocol() != "h2":
            self._violation("no ALPN")
            self._close_with(ErrorCodes.PROTOCOL_ERROR, b"")

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
        self._lifetime.stop()
        self._open.clear()
        self._reception.disconnect(self._connection)

    def pause_writing(self) -> None:
        """Read no more from a client that does not take its answers."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    # -- what the client does

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._begin(event.stream_id, event.headers)
            case DataReceived():
                self._take_data(event)
            case StreamEnded():
                self._end(event.stream_id)
            case StreamReset():
                self._give_up(event.stream_id)
            case SettingsAcknowledged():
                self._take_acknowledgement(event)
            case PingReceived():
                self._count_ping()
            case WindowUpdated():
                for stream_id in tuple(self._unsent):
                    self._send_body(stream_id, self._unsent.pop(stream_id))
            case ConnectionTerminated():
                self._transport.close()
            case _:
                pass

    def _take_data(self, event: DataReceived) -> None:
        incoming = self._open.get(event.stream_id)
        if incoming is not None and len(incoming.body) < _MAX_BODY_BYTES:
            incoming.body += event.data
        if event.flow_controlled_length:
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def _end(self, stream_id: int) -> None:
        incoming = self._open.get(stream_id)
        if incoming is not None:
            incoming.ended = True
            self._complete(stream_id)

    def _take_acknowledgement(self, event: SettingsAcknowledged) -> None:
        if SettingCodes.MAX_CONCURRENT_STREAMS in event.changed_settings or not self._limit_acknowledged:
            self._acknowledged_limit, self._limit_acknowledged = self._limit, True

    def _give_up(self, stream_id: int) -> None:
        if (incoming := self._open.pop(stream_id, None)) is not None:
            incoming.give_up()
        self._unsent.pop(stream_id, None)
        self._close_when_drained()

    def _begin(self, stream_id: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._received += 1
        self._lifetime.request()
        if self._received % _SWEEP_EVERY == 0:
            self._h2.sweep()
        if self._departure.turns_away(stream_id):
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
        self._open[stream_id] = IncomingRequest(headers, bytearray())
        self._connection.peak_streams = max(self._connection.peak_streams, len(self._open))

    def _complete(self, stream_id: int) -> None:
        if self._departure.fault is not None:
            self._departure.hold(stream_id)
            return
        self._process(stream_id, scripted=self._departure.last_allowed is None)

    def _process(self, stream_id: int, *, scripted: bool) -> None:
        incoming = self._open[stream_id]
        request = incoming.as_request(self._connection)
        if self._hole is not None:
            self._reception.swallow(request, self._hole)
            return
        reply = self._reception.receive(request, scripted=scripted)
        for change in reply.first:
            self._change(change)
        if not isinstance(reply.instead, Goaway):
            self._departure.last_processed = max(self._departure.last_processed, stream_id)
        if reply.turn is not None:
            reply.turn.then = partial(self._carry_out_late, stream_id)
        elif reply.delay_s:
            self._loop.call_later(reply.delay_s, self._carry_out_late, stream_id, reply)
        else:
            self._carry_out(stream_id, reply)

    # -- what the lab does

    def _carry_out_late(self, stream_id: int, reply: Reply) -> None:
        if stream_id in self._open and self._hole is None and not self._transport.is_closing():
            self._carry_out(stream_id, reply)
            if not self._flushes_soon:
                self._flushes_soon = True
                self._loop.call_soon(self._flush_together)

    def _flush_together(self) -> None:
        self._flushes_soon = False
        self._flush()

    def _carry_out(self, stream_id: int, reply: Reply) -> None:
        if reply.answer is not None:
            self._answer(stream_id, reply.answer)
            if reply.ends:
                self._flush()
                self._transport.close()
            return
        match reply.instead:
            case Goaway() as fault:
                self._start_going(stream_id, fault)
            case Rst(code):
                del self._open[stream_id]
                self._h2.reset_stream(stream_id, code)
            case BlackHole(scope) as hole:
                if scope == "streams":
                    self._hole = hole
                elif scope == "connection":
                    self._silent = True
                    self._transport.pause_reading()
            case Drop():
                self._transport.abort()
            case None:
                raise ValueError("a reply without an answer must say what happens instead")
            case _ as never:
                assert_never(never)

    def _answer(self, stream_id: int, answer: GatewayAnswer) -> None:
        del self._open[stream_id]
        headers = [(b":status", str(answer.status).encode())]
        headers += [(name.encode(), value.encode()) for name, value in answer.headers]
        self._h2.send_headers(stream_id, headers, end_stream=not answer.body)
        if answer.body:
            self._send_body(stream_id, answer.body)
        if self._departure.last_allowed is not None:
            self._close_when_drained()

    def _send_body(self, stream_id: int, body: bytes) -> None:
        """Send as much as the client's windows allow; the rest waits for WINDOW_UPDATE."""
        while body:
            room = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
            if room <= 0:
                self._unsent[stream_id] = body
                return
            last = len(body) <= room
            self._h2.send_data(stream_id, body[:room], end_stream=last and not self._rules.ends_with_empty_data)
            if last and self._rules.ends_with_empty_data:
                self._h2.send_data(stream_id, b"", end_stream=True)
            body = body[room:]

    def _change(self, change: SettingsChange | SlowReader) -> None:
        if isinstance(change, SlowReader):
            self._transport.pause_reading()
            self._timers.append(self._loop.call_later(change.pause_ms / 1000, self._transport.resume_reading))
            return
        if change.max_concurrent_streams is not None:
            self._limit = change.max_concurrent_streams
        self._h2.update_settings(setting_values(change))

    def _limit_streams(self, limit: int) -> None:
        if limit != self._limit:
            self._change(SettingsChange(max_concurrent_streams=limit))

    def _start_going(self, stream_id: int, fault: Goaway) -> None:
        self._departure.begin(stream_id, fault)
        if fault.graceful:
            self._send_goaway(LAST_POSSIBLE_STREAM, fault.code, debug_data(fault))
        if fault.hold_ms:
            self._timers.append(self._loop.call_later(fault.hold_ms / 1000, self._finish_going))
        else:
            self._finish_going()

    def _finish_going(self) -> None:
        """Send the GOAWAY that counts; process what it covers, forget what it does not."""
        fault = self._departure.fault
        if fault is None or self._transport.is_closing():
            return
        covered = self._departure.decide(self._open)
        last_allowed = self._departure.last_allowed or 0
        self._send_goaway(last_allowed, fault.code, debug_data(fault))
        for stream_id in [number for number in self._open if number > last_allowed]:
            del self._open[stream_id]
        for stream_id in covered:
            self._process(stream_id, scripted=False)
        self._close_when_drained()

    def _send_goaway(self, last_stream_id: int, code: int, debug: bytes) -> None:
        self._flush()
        self._transport.write(goaway(last_stream_id, code, debug))

    def _close_when_drained(self) -> None:
        if self._departure.last_allowed is not None and not self._open and not self._unsent:
            self._flush()
            self._transport.close()

    def _close_with(self, code: ErrorCodes, debug: bytes) -> None:
        self._h2.close_connection(code, debug)
        self._flush()
        self._transport.close()

    def _announce_end(self, debug: str) -> None:
        """End the connection in good order, as FCM does: requests in flight are still answered."""
        if self._departure.last_allowed is None:
            self._send_goaway(self._departure.end_with(self._open), ErrorCodes.NO_ERROR, debug.encode())
            self._close_when_drained()

    def _count_ping(self) -> None:
        if not self._lifetime.ping():
            self._violation("too many pings")
            self._close_with(ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings")

    def _violation(self, name: str) -> None:
        self._reception.records.violation(self._connection, name)

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._transport.write(data)
