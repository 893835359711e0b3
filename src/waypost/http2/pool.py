"""Requests to one origin over a few connections: the entry of this package."""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .connection import Connection
from .deadlines import RequestDeadlines
from .dial import dial
from .events import PoolEvent
from .link import Link
from .links import Dial, Links
from .results import Answer, Result, Unknown, Unsent
from .settings import Origin, PoolSettings, PoolStats
from .sockets import Sockets
from .stream import Batch, Stream


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
        self._deadlines = RequestDeadlines(self._loop, self._deadlines_passed)
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
        self.request_all([(head, body, on_result)], deadline, _tell_each, answer_by)

    def request_all(
        self,
        requests: Sequence[tuple[bytes, bytes, Any]],
        deadline: float,
        on_results: Callable[[list[tuple[Any, Result]]], None],
        answer_by: float = 0.0,
    ) -> None:
        """Send several requests as `request` sends each; framed, and told of, together they are cheaper.

        Each is a head, a body, and what the caller knows it by. *on_results* is called with those that have ended
        since it was called last, each by that and with its result.
        """
        self._requests_total += len(requests)
        batch = Batch(deadline, answer_by, on_results, len(requests))
        streams = [Stream(head, body, batch, tag) for head, body, tag in requests]
        sent = 0
        if not self._queue and not self._closed and deadline > self._loop.time():
            while sent < len(streams):
                link = self._links.pick()
                if link is None:
                    break
                sent += link.send_all(streams[sent : sent + self._links.share_of(link)])
        if sent:
            self._deadlines.add(batch)
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

    def settle(self, link: Link) -> None:
        """End what ended, send again what was refused, and fill the streams that became free."""
        connection = link.connection
        ended = connection.ended
        if ended:
            connection.ended = []
            self._conclude_all(ended)
        if connection.refused:
            refused = connection.refused
            connection.refused = []
            for stream in reversed(refused):
                self._send_again(stream, connection)
        self._links.freed = link
        if self._queue:
            self.dispatch()
        elif self._on_room is not None:
            self._on_room()
        self._links.freed = None
        if self._emptied is not None:
            self._check_emptied()

    def dispatch(self) -> None:
        """Send what waits while streams are free, oldest first."""
        queue = self._queue
        while queue:
            link = self._links.pick(next(iter(queue)).refused_by)
            if link is None:
                break
            part = [queue.popitem(last=False)[0]]
            share = self._links.share_of(link)
            while len(part) < share and queue and next(iter(queue)).refused_by is None:
                part.append(queue.popitem(last=False)[0])
            started = link.send_all(part)
            for stream in reversed(part[started:]):
                self._put_first(stream)

    def unreachable(self, reason: str) -> None:
        """Refuse what waits, since there is no connection and none could be made."""
        self._refuse_queued(reason)

    def waiting(self) -> int:
        """Return how many requests wait for a stream."""
        return len(self._queue)

    # How requests wait and end

    def _enqueue(self, stream: Stream) -> None:
        reason = self._closed
        deadline = stream.batch.deadline
        if not reason and deadline <= self._loop.time():
            reason = "deadline passed before it was sent"
        if not reason and len(self._queue) >= self._max_queue:
            reason = "queue full"
        if not reason:
            self._links.attempts.hurry()
        if not reason and self._links.next_attempt_at() >= deadline:
            reason = f"no connection before the deadline: {self._links.attempts.last_failure}"
        if reason:
            self._loop.call_soon(self._conclude, stream, Unsent(reason))
            return
        self._queue[stream] = None
        if not stream.batch.tick:
            self._deadlines.add(stream.batch)
        self._links.fill()

    def _send_again(self, stream: Stream, refused_by: Connection) -> None:
        if stream.overdue or self._closed == "the pool is closed":
            self._conclude(stream, Unsent(stream.refusal))
            return
        stream.refused_by = refused_by
        self._resent_total += 1
        self._put_first(stream)
        self._links.attempts.hurry()

    def _put_first(self, stream: Stream) -> None:
        self._queue[stream] = None
        self._queue.move_to_end(stream, last=False)

    def _deadlines_passed(self, batches: list[Batch]) -> None:
        """End what has not ended of *batches*, or wait longer for it."""
        passed = set(batches)
        streams = [stream for stream in self._queue if stream.batch in passed]
        for link in (*self._links.ready, *self._links.leaving):
            streams += [stream for stream in link.connection.streams.values() if stream.batch in passed]
        for stream in streams:
            self._deadline_passed(stream)

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
            batch = stream.batch
            if batch.answer_by > batch.deadline:
                if not batch.extended:
                    batch.extended = True
                    self._deadlines.extend(batch)
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
        """Tell what became of each of *streams*; neighbours of one batch are told of together."""
        batch = streams[0].batch
        ended: list[tuple[Any, Result]] = []
        for stream in streams:
            if stream.batch is not batch:
                self._tell(batch, ended)
                batch = stream.batch
                ended = []
            assert stream.result is not None
            ended.append((stream.tag, stream.result))
        self._tell(batch, ended)

    def _tell(self, batch: Batch, ended: list[tuple[Any, Result]]) -> None:
        answers = unknown = 0
        for _, result in ended:
            if isinstance(result, Answer):
                answers += 1
            elif isinstance(result, Unknown):
                unknown += 1
        self._answers_total += answers
        self._unknown_total += unknown
        self._unsent_total += len(ended) - answers - unknown
        batch.left -= len(ended)
        if not batch.left:
            self._deadlines.discard(batch)
        try:
            batch.on_results(ended)
        except Exception as error:  # noqa: BLE001 - one caller's bug must not take the others' results
            self._loop.call_exception_handler({"message": "on_results raised", "exception": error})

    def _check_emptied(self) -> None:
        if self._emptied is not None and not self._emptied.done() and not self._queue and not self._links.in_flight():
            self._emptied.set_result(None)


def _tell_each(ended: Iterable[tuple[Callable[[Result], None], Result]]) -> None:
    """Tell each of those that have ended by what it is known by."""
    for on_result, result in ended:
        on_result(result)
