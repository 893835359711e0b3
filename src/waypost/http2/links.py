"""The open connections of a pool: as many as wanted, replaced in time."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

from .attempts import Attempts
from .connection import Connection
from .events import ConnectFailed, ConnectionClosed, ConnectionOpened, GoAwayReceived, PoolEvent
from .frames import error_name
from .keeper import Keeper
from .link import Link
from .opening import ConnectionLimits
from .requests import Requests
from .results import Answer
from .settings import Origin, PoolSettings
from .sockets import Sockets
from .stream import Stream

# A lifetime is shortened by up to this fraction, so that connections opened together do not end together.
_LIFETIME_SPREAD: Final = 0.1
# A server that does not take part in closing is waited for this long.
_GOODBYE_S: Final = 2.0

# How a connection is opened: `dial`, unless somebody tests without a network.
Dial = Callable[[Origin, Callable[[], Link], float], Awaitable[Link]]


class Links:
    """The connections of a pool: `min_connections` stay open, more open under load up to `max_connections`.

    Connections that only finish what they have (after GOAWAY, age, idleness) are `leaving`; they count among the
    sockets, not among the connections.
    """

    def __init__(
        self,
        origin: Origin,
        settings: PoolSettings,
        loop: asyncio.AbstractEventLoop,
        requests: Requests,
        on_event: Callable[[PoolEvent], None] | None,
        jitter: Callable[[], float],
        sockets: Sockets,
        dial: Dial,
    ) -> None:
        self.ready: list[Link] = []
        self.freed: Link | None = None  # on which streams have just become free, while what waits is sent
        self.leaving: list[Link] = []
        self.opened_total = 0
        self.goaways_total = 0
        self._settings = settings
        self._loop = loop
        self._requests = requests
        self._on_event = on_event
        self._jitter = jitter
        self._sockets = sockets
        limits = ConnectionLimits(
            settings.initial_stream_limit,
            settings.max_streams,
            settings.max_response_bytes,
            settings.max_header_list_bytes,
        )
        self.attempts = Attempts(
            lambda: dial(origin, lambda: Link(self, limits, loop), settings.connect_timeout_s),
            settings,
            loop,
            sockets,
            jitter,
            requests.waiting,
        )
        self.attempts.on_open = self._opened
        self.attempts.on_failure = self._connect_failed
        self.attempts.on_retry = self.fill
        self._keeper = Keeper(self, settings, loop)

    def start(self) -> None:
        """Begin to connect and to look after what is connected."""
        self.fill()
        self._keeper.plan()

    async def stop(self, reason: str) -> None:
        """Close all, and wait until they are closed."""
        self._keeper.stop()
        await self.attempts.stop()
        for link in [*self.ready, *self.leaving]:
            link.close(reason)
        for link in [*self.ready, *self.leaving]:
            try:
                async with asyncio.timeout(_GOODBYE_S):
                    await link.gone.wait()
            except TimeoutError:
                link.abort(reason)

    def pick(self, avoid: object = None) -> Link | None:
        """Choose a connection with room, if possible below its high mark and not *avoid*; else ask for another.

        While what waits is sent no stream is free but on the connection that was `freed`: no other is looked at.
        """
        freed = self.freed
        if freed is not None and avoid is None and freed.room() > 0:
            if not self._is_below_mark(freed):
                self._grow()
            return freed
        best: Link | None = None
        most = 0
        for link in self.ready:
            room = link.room()
            connection = link.connection
            if room > 0 and connection is not avoid:
                if self._is_below_mark(link):
                    return link
                if room > most:
                    best = link
                    most = room
        self._grow()
        if best is None and avoid is not None:
            return self.pick()
        return best

    def _is_below_mark(self, link: Link) -> bool:
        connection = link.connection
        return len(connection.streams) < connection.stream_limit * self._settings.high_water

    def share_of(self, link: Link) -> int:
        """Return how many requests the connection just picked may take before another pick.

        Up to its high mark; past that, half of its room, so that all fill alike.
        """
        room = link.room()
        if link is self.freed:
            return room
        connection = link.connection
        below_mark = connection.stream_limit * self._settings.high_water - len(connection.streams)
        return min(math.ceil(below_mark), room) if below_mark > 0 else (room + 1) // 2

    def in_flight(self) -> int:
        """Count the requests that were sent and have not ended."""
        return sum([len(link.connection.streams) for link in self.ready]) + sum(
            [len(link.connection.streams) for link in self.leaving]
        )

    def carrying(self, stream: Stream) -> Link | None:
        """Find the connection that *stream* is in flight on."""
        for link in [*self.ready, *self.leaving]:
            if link.connection.streams.get(stream.stream_id) is stream:
                return link
        return None

    def next_attempt_at(self) -> float:
        """Return when a connection can be there at the earliest, by the loop's clock; 0 if there is no wait."""
        return 0.0 if self.ready or self.attempts.running else self.attempts.retry_at()

    def fill(self) -> None:
        """Open what is missing: the minimum, and one if requests wait."""
        attempts = self.attempts
        wanted = self._settings.min_connections or min(1, self._requests.waiting())
        self._keeper.short_of_sockets = False
        while len(self.ready) + len(attempts.running) < wanted and attempts.may_begin():
            if not attempts.begin():
                self._keeper.short_of_sockets = True
                self.watch()
                return

    def _grow(self) -> None:
        """Open more for what waits: at most as many at once as have answered, so that their number doubles.

        A connection that has answered nothing may still be held at its first stream: more would not help.
        """
        attempts = self.attempts
        free = self._settings.max_connections - len(self.ready) - len(attempts.running)
        if free <= 0 or not attempts.may_begin():
            return
        answered = sum([link.answered for link in self.ready])
        unproven = len(self.ready) - answered + len(attempts.running)
        streams = max([link.connection.stream_limit for link in self.ready], default=1)
        useful = self._requests.waiting() // max(1, streams) - unproven
        wanted = min(free, max(1, answered) - unproven, max(useful, int(not unproven)))
        while wanted > 0 and attempts.begin():
            wanted -= 1

    # What attempts tell

    def _opened(self, link: Link) -> None:
        if self._settings.max_age_s is not None:
            link.lifetime_s = self._settings.max_age_s * (1 - _LIFETIME_SPREAD * self._jitter())
        self.ready.append(link)
        self.opened_total += 1
        self._tell(ConnectionOpened())
        self._requests.dispatch()
        self._keeper.plan()

    def _connect_failed(self, reason: str, alert: str) -> None:
        self._tell(ConnectFailed(reason, self.attempts.back_off(), alert))
        if not self.ready and not self.attempts.running:
            self._requests.unreachable(reason)

    # What links tell

    def progressed(self, link: Link) -> None:
        """Hand over what ended, and let go of a connection that the server has announced to end."""
        connection = link.connection
        if connection.ended:
            self._answered(link)
        elif connection.refused and not connection.finished:
            self._refused(link)
        if connection.finished:
            self._finish(link)
        unfit = not link.leaving and self._is_unfit(connection)
        if unfit:
            self._leave(link, "an answer says that it is of no use")
        self._pass_on(link)
        if unfit:
            self.fill()

    def _pass_on(self, link: Link) -> None:
        self._requests.settle(link)
        if link.leaving and not link.connection.streams:
            link.close(link.leave_reason)

    def _answered(self, link: Link) -> None:
        link.record.answered(link.connection)
        if not link.answered:
            link.answered = True
            self.attempts.was_of_use()

    def _refused(self, link: Link) -> None:
        """Let a connection rest that does nothing but refuse: what it gave back would come back at once."""
        rest_s = link.record.refused()
        if rest_s:
            link.resting = True
            self._loop.call_later(rest_s, self._rested, link)

    def _rested(self, link: Link) -> None:
        link.resting = False
        self._requests.dispatch()

    # What deadlines tell

    def overdue(self, link: Link, stream: Stream) -> None:
        """Give no more requests to a connection in doubt, alive or not, where another can take its place."""
        if link.record.overdue(stream, link.connection) and not link.leaving and self._has_successor():
            self.retire(link, "its requests were not answered before their deadlines")

    def give_up(self, link: Link, stream: Stream) -> None:
        """Wait no longer for the answer to *stream*."""
        link.cancel(stream, "no answer before the deadline")
        self._pass_on(link)

    def _has_successor(self) -> bool:
        attempts = self.attempts
        return len(self.ready) > 1 or bool(attempts.running) or (attempts.may_begin() and attempts.begin())

    def watch(self) -> None:
        """Check connections more often, since one is in use again, or closes."""
        self._keeper.watch()

    def closed(self, link: Link, reason: str) -> None:
        """Replace a connection that is no more: at once if it had been of use, else with backoff."""
        self._sockets.give_back()
        if link in self.leaving:
            self.leaving.remove(link)
        else:
            self.ready.remove(link)
            self._replace(link)
        self._tell(ConnectionClosed(reason, link.alert))
        self._requests.settle(link)
        self.fill()

    def _is_unfit(self, connection: Connection) -> bool:
        judge = self._settings.unfit
        if judge is None or not connection.refusals:
            return False
        connection.refusals = 0
        results = [stream.result for stream in connection.ended]
        return any([isinstance(each, Answer) and each.status != 200 and judge(each) for each in results])

    def _finish(self, link: Link) -> None:
        """Let go of a connection that can carry no more requests; what it carries still ends on it."""
        goaways = link.connection.goaways
        reason = "out of stream ids"
        while goaways:
            goaway = goaways.pop(0)
            reason = f"the server sent GOAWAY: {error_name(goaway.code)}"
            self.goaways_total += 1
            self._tell(GoAwayReceived(goaway.code, goaway.last_stream_id, goaway.debug))
        if not link.leaving and not link.connection.failure:
            self._leave(link, reason)
            self._replace(link)

    def _replace(self, link: Link) -> None:
        lived_s = self._loop.time() - link.opened_at
        if not link.answered and lived_s < self._settings.backoff_cap_s:
            self.attempts.back_off()

    def _leave(self, link: Link, reason: str) -> None:
        self.ready.remove(link)
        self.leaving.append(link)
        link.leaving = True
        link.leave_reason = reason

    def retire(self, link: Link, reason: str) -> None:
        """Let *link* finish what it has, then close it; what is missing then is opened."""
        self._leave(link, reason)
        if not link.connection.streams:
            link.close(reason)
        self.fill()

    def _tell(self, event: PoolEvent) -> None:
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception as error:  # noqa: BLE001 - a listener's bug must not end a connection
                self._loop.call_exception_handler({"message": "on_event raised", "exception": error})
