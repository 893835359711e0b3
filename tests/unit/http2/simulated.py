"""A pool without a network and without waiting: a loop whose clock jumps, and servers in memory that keep count."""

import asyncio
import selectors
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hyperframe.frame import DataFrame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

from tests.unit.http2 import peer
from waypost.http2 import Answer, GoAwayReceived, Lost, Origin, Pool, PoolEvent, PoolSettings, Result, Unknown, Unsent
from waypost.http2.dial import DialError
from waypost.http2.frames import ENHANCE_YOUR_CALM, LARGEST_STREAM_ID, NO_ERROR

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
ORIGIN = Origin("simulated.test", 443, None)
T = TypeVar("T")


class _NoWaiting(selectors.SelectSelector):
    """Where the loop would wait for time to pass, it passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Jump over *timeout*; RuntimeError if nothing would ever happen."""
        if timeout is None:
            raise RuntimeError("the simulation waits for nothing")
        self.now += max(0.0, timeout)
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop on a clock of its own."""

    def __init__(self) -> None:
        self._clock = _NoWaiting()
        super().__init__(self._clock)

    def time(self) -> float:
        """Simulated seconds."""
        return self._clock.now

    def stand_still(self, for_s: float) -> None:
        """Let time pass in which nothing runs here, as in a process that is stopped."""
        self._clock.now += for_s


def simulate(life: Coroutine[Any, Any, T]) -> T:
    """Run *life* on a jumping clock."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(life)


@dataclass
class Server:
    """A provider's rules for connections, what it does at the moment, and what it has seen."""

    streams: int = 100
    latency_s: float = 0.05
    takes_s: float = 0.0  # from a request to its answer, beside latency
    idle_s: float | None = None
    max_age_s: float | None = None
    pings_allowed: int | None = None
    accepts: bool = True
    hears: bool = True
    refuses: bool = False  # each stream, before it did anything
    resets: bool = False  # each stream, after it did what was asked
    answers: bool = True
    serves: int | None = None  # so many requests a connection; what comes after is given back by GOAWAY
    executed: Counter[bytes] = field(default_factory=Counter)
    open: "list[Served]" = field(default_factory=list)
    opened: int = 0
    most_open: int = 0
    pings: int = 0

    async def dial(self, origin: Origin, protocol: Callable[[], Any], timeout_s: float) -> Any:
        """Connect, or fail as the network would."""
        await asyncio.sleep(self.latency_s)
        if not self.accepts:
            raise DialError("refused")
        if not self.hears:
            await asyncio.sleep(timeout_s)
            raise DialError("nobody answers")
        link = protocol()
        served = Served(self, link)
        self.open.append(served)
        self.opened += 1
        self.most_open = max(self.most_open, len(self.open))
        link.connection_made(served)
        return link


class Served(asyncio.Transport):
    """One connection: the client's transport, and the server behind it."""

    def __init__(self, server: Server, link: Any) -> None:
        super().__init__()
        self.server = server
        self.link = link
        self.last_id = 0
        self.refused_above = LARGEST_STREAM_ID
        self.idle_pings = 0
        self.silent = False  # this connection alone: nothing arrives any more, either way
        self.served = 0
        self.told = asyncio.Event()  # the client has written something, which is on its way
        self.wedged = False  # this connection alone: PINGs are answered, requests are not
        self.resets: list[int] = []  # streams that the client gave up
        self._loop = asyncio.get_running_loop()
        self._dead = False
        self._held = False
        # Timers of the same moment fire in any order: these keep it.
        self._to_server: deque[bytes] = deque()
        self._to_client: deque[bytes] = deque()
        self._bodies: dict[int, bytes] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._seen()
        if server.max_age_s is not None:
            self._loop.call_later(server.max_age_s, self.go_away, None, NO_ERROR, b"max_age")

    # The client's side

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Never full."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """What the client says arrives a while later."""
        self._to_server.append(bytes(data))
        self.told.set()
        self._loop.call_later(self.server.latency_s / 2, self._hear)

    def close(self) -> None:
        """The client closes; what it wrote before still arrives."""
        self._loop.call_later(self.server.latency_s / 2, self.cut)

    def abort(self) -> None:
        """The client is gone."""
        self.cut()

    # The server's side

    def cut(self) -> None:
        """The connection is no more."""
        if not self._dead:
            self._dead = True
            self.server.open.remove(self)
            if self._idle is not None:
                self._idle.cancel()
            self._loop.call_soon(self.link.connection_lost, None)

    def say(self, *pieces: bytes) -> None:
        """What the server says arrives a while later."""
        self._to_client.append(b"".join(pieces))
        self._loop.call_later(self.server.latency_s / 2, self._arrive)

    def go_away(self, last_id: int | None, code: int, debug: bytes = b"") -> None:
        """GOAWAY; what is above *last_id* (None: all that came is below) is not done; closed when all is answered."""
        if self._dead:
            return
        self.refused_above = min(self.refused_above, self.last_id if last_id is None else last_id)
        self.say(peer.goaway(self.refused_above, code, debug))

    def stands_still(self, for_s: float) -> None:
        """Nothing is read or said for a while; then all of it is."""
        self._held = True
        self._loop.call_later(for_s, self._go_on)

    def _go_on(self) -> None:
        self._held = False
        while self._to_server:
            self._hear()
        while self._to_client:
            self._arrive()

    def limit(self, streams: int) -> None:
        """Allow more or fewer streams."""
        self.say(peer.settings(MAX_CONCURRENT_STREAMS=streams))

    def _arrive(self) -> None:
        if self._held or not self._to_client:
            return
        data = self._to_client.popleft()
        if not self._dead and self.server.hears and not self.silent:
            self.link.data_received(data)

    def _seen(self) -> None:
        if self.server.idle_s is not None:
            if self._idle is not None:
                self._idle.cancel()
            self._idle = self._loop.call_later(self.server.idle_s, self.go_away, None, NO_ERROR, b"session_timeout")

    def _hear(self) -> None:
        if self._held or not self._to_server:
            return
        data = self._to_server.popleft()
        if self._dead or not self.server.hears or self.silent:
            return
        for frame in peer.read(data):
            match frame:
                case SettingsFrame() if "ACK" not in frame.flags:
                    self.say(peer.settings(MAX_CONCURRENT_STREAMS=self.server.streams), peer.raw(4, 1, 0, b""))
                case PingFrame() if "ACK" not in frame.flags:
                    self._ping(frame.opaque_data)
                case HeadersFrame() | DataFrame():
                    self._bodies[frame.stream_id] = b"" if isinstance(frame, HeadersFrame) else frame.data
                    if "END_STREAM" in frame.flags:
                        self._request(frame.stream_id, self._bodies.pop(frame.stream_id))
                case RstStreamFrame():
                    self.resets.append(frame.stream_id)
                case GoAwayFrame():
                    pass  # the client closes
                case _:
                    pass  # windows are never short here

    def _ping(self, opaque: bytes) -> None:
        self.server.pings += 1
        self.idle_pings += 1
        if self.server.pings_allowed is not None and self.idle_pings >= self.server.pings_allowed:
            self.go_away(None, ENHANCE_YOUR_CALM, b"too_many_pings")
        self.say(peer.raw(6, 1, 0, opaque))

    def _request(self, stream_id: int, body: bytes) -> None:
        server = self.server
        self._seen()
        self.idle_pings = 0
        if stream_id > self.refused_above:
            return
        if server.serves is not None and self.served >= server.serves:
            self.go_away(None, NO_ERROR)
            return
        self.served += 1
        self.last_id = stream_id
        if server.refuses:
            self.say(peer.rst(stream_id, 7))
            return
        server.executed[body] += 1
        if server.resets:
            self.say(peer.rst(stream_id, 2))
        elif server.answers and not self.wedged:
            self._loop.call_later(server.takes_s, self.say, peer.answer(stream_id))


class Bench:
    """A pool with a simulated server, and what became of each request."""

    def __init__(self, server: Server, settings: PoolSettings) -> None:
        self.server = server
        self.events: list[PoolEvent] = []
        self.results: dict[bytes, Result] = {}
        self.asked = 0
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        self.loop = loop
        self.pool = Pool(ORIGIN, settings, on_event=self.events.append, jitter=lambda: 0.5, dial=server.dial)

    def ask(self, deadline_s: float = 10.0, answer_by_s: float = 0.0) -> bytes:
        """A request; its body, which no other has. A late answer is waited for where *answer_by_s* says so."""
        body = b"%d" % self.asked
        self.asked += 1

        def on_result(result: Result) -> None:
            assert body not in self.results, "ended twice"
            self.results[body] = result

        now = self.loop.time()
        self.pool.request(peer.HEAD, body, now + deadline_s, on_result, now + answer_by_s if answer_by_s else 0.0)
        return body

    def goaways(self) -> list[GoAwayReceived]:
        """Those received so far."""
        return [event for event in self.events if isinstance(event, GoAwayReceived)]

    async def end(self) -> None:
        """Close; then each request has ended once, and told the truth about what the server did."""
        await self.pool.drain(60.0)
        await self.pool.close()
        assert len(self.results) == self.asked
        for body, result in self.results.items():
            done = self.server.executed[body]
            match result:
                case Answer():
                    assert done == 1
                case Unsent():
                    assert done == 0, result
                case Unknown(_, kind):
                    assert done <= 1
                    assert isinstance(kind, Lost)
        stats = self.pool.stats
        assert not stats.connections and not stats.in_flight and not stats.queued and not stats.connecting
