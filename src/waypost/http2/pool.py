"""Requests to one origin over a few connections: the entry of this package."""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence

from .connection import Connection
from .deadlines import RequestDeadlines
from .dial import dial
from .events import PoolEvent
from .links import Dial, Links
from .results import Answer, Result, Unknown, Unsent
from .settings import Origin, PoolSettings, PoolStats
from .sockets import Sockets
from .stream import Stream


class Pool:
    """A pool of connections to one origin; each request ends exactly once, as an Answer, Unsent or Unknown.

    Belongs to one event loop. Nothing here raises because of the network: a request's result says what happened.
    *on_room* is called when requests have ended and none is queued: for whoever would rather keep requests than queue.
    """

    def __init__(
        self,
        origin: Origin,
        settings: PoolSettings,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        on_event: Callable[[PoolEvent], None] | None = None,
        on_room: Callable[[], None] | None = None,
        jitter: Callable[[], float] = random.random,
        sockets: Sockets | None = None,
        dial: Dial = dial,
    ) -> None:
        if origin.tls is not None:
            origin.tls.set_alpn_protocols(["h2"])
        self._loop = loop or asyncio.get_running_loop()
        self._max_queue = settings.max_queue
        self._on_room = on_room
        if sockets is None:
            # Each connection may have a successor while it ends.
            sockets = Sockets(2 * settings.max_connections)
        self._links = Links(origin, settings, self._loop, self, on_event, jitter, sockets, dial)
        self._deadlines = RequestDeadlines(self._loop, self._deadline_passed)
        # Ordered, and any of them can be taken out at once.
        self._queue: OrderedDict[Stream, None] = OrderedDict()
        self._closed = ""
        self._emptied: asyncio.Future[None] | None = None
        self._requests_total = 0
        self._answers_total = 0
        self._unsent_total = 0
        self._unknown_total = 0
        self._resent_total = 0

    # For callers

    async def start(self) -> None:
        """Begin to connect, in the background; a server that is away is no error."""
        self._links.start()

    def request(
        self,
        head: bytes,
        body: bytes,
        deadline: float,
        on_result: Callable[[Result], None],
        answer_by: float = 0.0,
    ) -> None:
        """Send a request, now or when a stream is free.

        *head* is a whole header block (`encode_headers`). *deadline* and *answer_by* are instants of the loop's clock:
        what still waits to be sent at the first is Unsent; what was sent is waited for until the second (the deadline,
        where none is given) and is Unknown then. *on_result* is called exactly once, never before this returns.
        """
        self.request_all([(head, body, on_result)], deadline, answer_by)

    def request_all(
        self,
        requests: Sequence[tuple[bytes, bytes, Callable[[Result], None]]],
        deadline: float,
        answer_by: float = 0.0,
    ) -> None:
        """Send several requests (head, body, *on_result*) as `request` sends each; framed together they are cheaper."""
        self._requests_total += len(requests)
        streams = [Stream(head, body, deadline, on_result, answer_by) for head, body, on_result in requests]
        sent = 0
        if not self._queue and not self._closed and deadline > self._loop.time():
            while sent < len(streams):
                link = self._links.pick()
                if link is None:
                    break
                part = link.send_all(streams[sent : sent + self._links.share_of(link)])
                self._deadlines.add_all(part)
                sent += len(part)
        for stream in streams[sent:]:
            self._enqueue(stream)

    def give_back(self, reason: str) -> None:
        """End what is queued as Unsent: the caller knows that the server would take none of it."""
        self._refuse_queued(reason)

    def room(self) -> int:
        """Return how many requests would go out now without queueing."""
        if self._queue or self._closed:
            return 0
        return sum([link.room() for link in self._links.ready])

    @property
    def stats(self) -> PoolStats:
        """The pool's numbers at this moment."""
        links = self._links
        return PoolStats(
            connections=len(links.ready) + len(links.leaving),
            ready=len(links.ready),
            connecting=len(links.attempts.running),
            in_flight=links.in_flight(),
            queued=len(self._queue),
            opened_total=links.opened_total,
            handshakes_total=links.attempts.total,
            requests_total=self._requests_total,
            answers_total=self._answers_total,
            unsent_total=self._unsent_total,
            unknown_total=self._unknown_total,
            resent_total=self._resent_total,
            goaways_total=links.goaways_total,
        )

    async def drain(self, timeout_s: float) -> None:
        """Take no more requests and wait until all have ended, at most *timeout_s*."""
        self._closed = self._closed or "the pool is draining"
        if not self._queue and not self._links.in_flight():
            return
        self._emptied = self._loop.create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self._emptied
        except TimeoutError:
            pass  # what is left ends by its deadline, or by close
        finally:
            self._emptied = None

    async def close(self) -> None:
        """Close all connections; what has not ended does so now. Call `drain` first to let it finish."""
        self._closed = "the pool is closed"
        self._refuse_queued(self._closed)
        await self._links.stop(self._closed)
        self._deadlines.stop()

    # For the connections

    def settle(self, connection: Connection) -> None:
        """End what ended, send again what was refused, and fill the streams that became free."""
        ended = connection.ended
        if ended:
            connection.ended = []
            self._conclude_all(ended)
        if connection.refused:
            refused = connection.refused
            connection.refused = []
            for stream in reversed(refused):
                self._send_again(stream, connection)
        if self._queue:
            self.dispatch()
        elif self._on_room is not None:
            self._on_room()
        if self._emptied is not None:
            self._check_emptied()

    def dispatch(self) -> None:
        """Send what waits while streams are free, oldest first."""
        queue = self._queue
        while queue:
            stream = next(iter(queue))
            link = self._links.pick(stream.refused_by)
            if link is None:
                break
            queue.popitem(last=False)
            link.send(stream)

    def unreachable(self, reason: str) -> None:
        """Refuse what waits, since there is no connection and none could be made."""
        self._refuse_queued(reason)

    def waiting(self) -> int:
        """Return how many requests wait for a stream."""
        return len(self._queue)

    # How requests wait and end

    def _enqueue(self, stream: Stream) -> None:
        reason = self._closed
        if not reason and stream.deadline <= self._loop.time():
            reason = "deadline passed before it was sent"
        if not reason and len(self._queue) >= self._max_queue:
            reason = "queue full"
        if not reason:
            self._links.attempts.hurry()
        if not reason and self._links.next_attempt_at() >= stream.deadline:
            reason = f"no connection before the deadline: {self._links.attempts.last_failure}"
        if reason:
            self._loop.call_soon(self._conclude, stream, Unsent(reason))
            return
        self._queue[stream] = None
        self._deadlines.add(stream)
        self._links.fill()

    def _send_again(self, stream: Stream, refused_by: Connection) -> None:
        if stream.overdue or self._closed == "the pool is closed":
            self._conclude(stream, Unsent(stream.refusal))
            return
        stream.refused_by = refused_by
        self._resent_total += 1
        self._queue[stream] = None
        self._queue.move_to_end(stream, last=False)
        self._links.attempts.hurry()

    def _deadline_passed(self, stream: Stream) -> None:
        if stream in self._queue:
            del self._queue[stream]
            self._conclude(stream, Unsent(stream.refusal or "deadline passed while queued"))
            return
        link = self._links.carrying(stream)
        if link is None:
            return
        if not stream.overdue:
            stream.overdue = True
            self._links.overdue(link, stream)
            if stream.answer_by > stream.deadline:
                self._deadlines.extend(stream)
                return
        self._links.give_up(link, stream)

    def _refuse_queued(self, reason: str) -> None:
        queued = list(self._queue)
        self._queue.clear()
        for stream in queued:
            self._conclude(stream, Unsent(reason))

    def _conclude(self, stream: Stream, result: Result) -> None:
        stream.result = result
        self._conclude_all([stream])
        if self._emptied is not None:
            self._check_emptied()

    def _conclude_all(self, streams: list[Stream]) -> None:
        """Hand each of *streams* its result."""
        self._deadlines.discard_all(streams)
        for stream in streams:
            result = stream.result
            assert result is not None
            if isinstance(result, Answer):
                self._answers_total += 1
            elif isinstance(result, Unknown):
                self._unknown_total += 1
            else:
                self._unsent_total += 1
            try:
                stream.on_result(result)
            except Exception as error:  # noqa: BLE001 - one caller's bug must not take the others' results
                self._loop.call_exception_handler({"message": "on_result raised", "exception": error})

    def _check_emptied(self) -> None:
        if self._emptied is not None and not self._emptied.done() and not self._queue and not self._links.in_flight():
            self._emptied.set_result(None)
