"""The news of one process: what is to be read from feeds for those who are connected, and told to them.

One task reads and tells, a page at a time, so that whatever counts are told later are newer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Notification
from waypost.entrypoints.live.connection import BEGINS_NOW, Connection, Reader
from waypost.entrypoints.live.messages import LiveMessage
from waypost.pipeline.feed import worded
from waypost.ports.feed import Entry, Feed, FeedCounts, Mark, NewsQuery, Saying
from waypost.ports.live import Changed
from waypost.telemetry import Event, Telemetry

NEWS_LIMIT: Final = 100
"""The most entries that a connection catches up with; a client that misses more lists the feed."""
READERS_AT_ONCE: Final = 100
AGAIN_S: Final = 0.5


async def as_stored(notifications: Sequence[Notification]) -> Sequence[Notification]:
    """Return *notifications* as they are."""
    return notifications


class News:
    """The reader of what came into feeds, which tells the connections of their users."""

    def __init__(
        self,
        feed: Feed,
        telemetry: Telemetry,
        view: Callable[[Entry], Any],
        of: Callable[[Reader], Sequence[Connection]],
        arrived: Callable[[Sequence[Reader]], Any],
    ) -> None:
        """Create it; *of* names the connections of a reader, and *arrived* is awaited before one is read for."""
        self._feed = feed
        self._telemetry = telemetry
        self._view = view
        self._of = of
        self._arrived = arrived
        self.say: Saying = as_stored
        """Puts the words of templates into what is told."""
        self._brought: deque[tuple[Reader, NotificationId]] = deque()
        self._changes: deque[Changed] = deque()
        self._behind: deque[Connection] = deque()
        """Connections that may miss something."""
        self._woken = asyncio.Event()

    def brought(self, reader: Reader, notification_id: NotificationId) -> None:
        """Read an entry, and tell its reader."""
        self._brought.append((reader, notification_id))
        self._woken.set()

    def changed(self, change: Changed) -> None:
        """Read the counts, and tell of a change."""
        self._changes.append(change)
        self._woken.set()

    def read_for(self, connection: Connection) -> None:
        """Read what *connection* has missed."""
        connection.is_missing = True
        if not connection.is_reading:
            connection.is_reading = True
            self._behind.append(connection)
            self._woken.set()

    async def read_on(self) -> None:
        """Read and tell, for ever."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                while self._brought or self._changes or self._behind:
                    await self._tell_brought()
                    await self._tell_changes()
                    await self._catch_up()
            except Unavailable:
                await asyncio.sleep(AGAIN_S)  # the store reports its outage itself
                self._woken.set()
            except Exception as surprise:  # noqa: BLE001 - nobody is told anything any more where this task ends
                self.report(surprise)
                await asyncio.sleep(AGAIN_S)
                self._woken.set()

    def report(self, surprise: Exception) -> None:
        """Report what should not have happened."""
        self._telemetry.event(Event.STAGE_FAILED, stage="live", error=type(surprise).__name__)

    async def _tell_brought(self) -> None:
        """Read what was brought, and tell those who follow it."""
        news = [self._brought.popleft() for _ in range(min(len(self._brought), READERS_AT_ONCE))]
        if not news:
            return
        try:
            found = await worded(await self._feed.entries([each[1] for each in news]), self.say)
            counts = await self._counts([reader for reader, _ in news])
        except BaseException:
            for reader, _ in news:
                for each in self._of(reader):
                    self.read_for(each)
            raise
        entries = {each.record.notification.id: each for each in found}
        for reader, notification_id in news:
            entry = entries.get(notification_id)
            if entry is not None:
                message = self._message(entry, counts[reader])
                for each in self._of(reader):
                    each.take(entry.place, message)

    async def _tell_changes(self) -> None:
        """Tell of changes, with the counts that are true now; who is behind hears of it once it has caught up."""
        changes = [self._changes.popleft() for _ in range(min(len(self._changes), READERS_AT_ONCE))]
        if not changes:
            return
        try:
            counts = await self._counts([Reader(each.app, each.user_id) for each in changes])
        except BaseException:
            for change in changes:
                for each in self._of(Reader(change.app, change.user_id)):
                    each.missed_mark = change.mark
                    self.read_for(each)
            raise
        for change in changes:
            reader = Reader(change.app, change.user_id)
            message = _marked(change.mark, counts[reader], change.ids)
            for each in self._of(reader):
                if each.is_paused:
                    each.missed_mark, each.is_missing = change.mark, True
                elif each.is_greeted:
                    each.tell(message)

    async def _catch_up(self) -> None:
        """Read for connections what they miss, and tell them; who misses too much is told to list the feed."""
        asking = [self._behind.popleft() for _ in range(min(len(self._behind), READERS_AT_ONCE))]
        for each in asking:
            each.is_reading = not each.transport.is_closing() and not each.is_paused
            each.is_missing = not each.is_reading
        asking = [each for each in asking if each.is_reading]
        if not asking:
            return
        try:
            await self._greet([each for each in asking if not each.is_greeted])
            queries = [NewsQuery(*each.reader, each.place) for each in asking]
            found = [await worded(each, self.say) for each in await self._feed.news(queries, NEWS_LIMIT + 1)]
            told = [each.reader for each, news in zip(asking, found, strict=True) if news or each.missed_mark]
            counts = await self._counts(told)
        except BaseException:
            for each in asking:
                each.is_missing = True
            self._behind.extend(asking)
            raise
        for each, entries in zip(asking, found, strict=True):
            self._tell_missed(each, entries, counts.get(each.reader, FeedCounts()))

    async def _greet(self, arrived: Sequence[Connection]) -> None:
        """Say how many are unread; who named no place begins at the newest entry.

        So does who names a place that there is not yet, which is of before the store was moved or restored: they are
        told to list the feed.
        """
        if not arrived:
            return
        await self._arrived([each.reader for each in arrived])
        for each, counts in zip(arrived, await self._feed.counts([each.reader for each in arrived]), strict=True):
            each.is_greeted = True
            is_unknown = each.place > counts.newest
            if is_unknown or each.place == BEGINS_NOW:
                each.place = counts.newest
            each.tell(LiveMessage("hello", each.place, unread=counts.unread, unseen=counts.unseen))
            if is_unknown:
                each.tell(LiveMessage("fetch", each.place))

    def _tell_missed(self, connection: Connection, entries: Sequence[Entry], counts: FeedCounts) -> None:
        connection.is_reading = False
        if len(entries) > NEWS_LIMIT:
            connection.place = max(entries[-1].place, counts.newest)  # the list that it fetches has them all
            connection.tell(LiveMessage("fetch", connection.place))
            connection.is_missing = True
        for entry in () if len(entries) > NEWS_LIMIT else entries:
            if connection.is_paused:
                connection.is_missing = True
                break
            connection.place = entry.place
            connection.tell(self._message(entry, counts))
        mark = connection.missed_mark
        if mark is not None and not connection.is_paused:
            connection.missed_mark = None
            connection.tell(_marked(mark, counts, ()))
        if connection.is_missing and not connection.is_paused:
            self.read_for(connection)

    async def _counts(self, readers: Sequence[Reader]) -> dict[Reader, FeedCounts]:
        distinct = list(dict.fromkeys(readers))
        return dict(zip(distinct, await self._feed.counts(distinct), strict=True)) if distinct else {}

    def _message(self, entry: Entry, counts: FeedCounts) -> LiveMessage:
        """Make the message that shows *entry*; one that cannot be shown by itself has the client list the feed."""
        try:
            seen = self._view(entry)
        except Exception as surprise:  # noqa: BLE001 - what is wrong with one entry must not keep others back
            self.report(surprise)
            return LiveMessage("fetch", entry.place)
        return LiveMessage("entry", entry.place, entry=seen, unread=counts.unread, unseen=counts.unseen)


def _marked(mark: Mark, counts: FeedCounts, ids: Sequence[NotificationId]) -> LiveMessage:
    """Make the message of a mark; without *ids* the client lists the feed."""
    fields: dict[str, Any] = {"ids": [format_id(each) for each in ids]} if ids else {}
    return LiveMessage("marked", mark=mark, **fields, unread=counts.unread, unseen=counts.unseen)
