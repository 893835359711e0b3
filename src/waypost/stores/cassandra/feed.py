"""Feeds that are listed from Cassandra: a copy of each beside the store, which counts, marks and erases.

A page of the copy is shown where its stamp is the one that the feed has now, and then it is as new as the feed; else
the store's own is, and the copy is mended. So nothing that is lost on the way to the copy can be believed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.ports.clock import Clock
from waypost.ports.feed import (
    Entry,
    FeedCounts,
    FeedPage,
    FeedQuery,
    Folder,
    FollowedFeed,
    MarkedEntry,
    Marking,
    NewEntry,
    NewsQuery,
    Shown,
    Step,
    Unread,
    UnreadQuery,
)
from waypost.stores.cassandra.feed_copy import FeedCopy, User
from waypost.telemetry import Metric, Telemetry

REST_S: Final = 5.0
"""Seconds for which a cluster that did not answer is not asked: feeds are listed from the store meanwhile."""
PAUSE_S: Final = 0.1
"""Seconds after which a copy that is behind is looked at again: whoever changed the feed may be writing it."""
MENDED_AT_ONCE: Final = 8
COPIED_AT_ONCE: Final = 32
ROWS_A_ROUND: Final = 100
"""The least rows read at a time where most may be passed over."""
DROP_ATTEMPTS: Final = 5


class CopiedFeed:
    """See Feed; lists come from the copies, all else from the *source*."""

    def __init__(self, source: FollowedFeed, copy: FeedCopy, clock: Clock, telemetry: Telemetry) -> None:
        self._source = source
        self._copy = copy
        self._clock = clock
        self._telemetry = telemetry
        self._rests_until_s = float("-inf")
        self._mending: dict[User, asyncio.Task[None]] = {}
        self._copying: Counter[User] = Counter()
        self._places = asyncio.Semaphore(COPIED_AT_ONCE)

    async def close(self) -> None:
        """Stop mending; what is not mended stays behind, and is mended when it is next read."""
        for task in self._mending.values():
            task.cancel()
        await asyncio.gather(*self._mending.values(), return_exceptions=True)

    async def mended(self) -> None:
        """Wait until no copy is being mended."""
        while self._mending:
            await asyncio.wait(self._mending.values())

    async def add(self, entries: Sequence[NewEntry]) -> list[NewEntry]:
        """See Feed."""
        added, steps = await self._source.add_by_steps(entries)
        ids: dict[User, list[NotificationId]] = {}
        for each in added:
            ids.setdefault((each.app, each.user_id), []).append(each.notification_id)
        await asyncio.gather(*(self._follow(step, ids.get((step.app, step.user_id), [])) for step in steps))
        return added

    async def mark(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        marked, steps = await self._source.mark_by_steps(marking)
        for step in steps:
            await self._follow(step, [each.notification_id for each in marked])
        return marked

    async def meant(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        return await self._source.meant(marking)

    async def page(self, query: FeedQuery) -> FeedPage:
        """See Feed; the state of an entry's delivery is as it was when the entry was copied."""
        user = query.app, query.user_id
        stamp = await self._source.stamp(*user)
        if stamp is None:
            return await self._source.page(query)
        if self._rests:
            self._count("bypassed")
            return await self._source.page(query)
        page = await self._from_copy(query, stamp)
        self._count("miss" if page is None else "hit")
        return page or await self._source.page(query)

    async def news(self, queries: Sequence[NewsQuery], limit: int) -> list[list[Entry]]:
        """See Feed."""
        return await self._source.news(queries, limit)

    async def entries(self, ids: Sequence[NotificationId]) -> list[Entry]:
        """See Feed."""
        return await self._source.entries(ids)

    async def counts(self, users: Sequence[tuple[AppId, UserId]]) -> list[FeedCounts]:
        """See Feed."""
        return await self._source.counts(users)

    async def unread(self, queries: Sequence[UnreadQuery]) -> list[Unread]:
        """See Feed."""
        return await self._source.unread(queries)

    async def stamp(self, app: AppId, user_id: UserId) -> int | None:
        """See Feed."""
        return await self._source.stamp(app, user_id)

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """See Feed; Unavailable where the copy could not be deleted, too."""
        await self._source.erase(app, user_id)
        for _ in range(DROP_ATTEMPTS):
            if await self._copy.drop((app, user_id)):
                return
        raise Unavailable("the copy of the feed is being written: it is erased at the next attempt")

    @property
    def _rests(self) -> bool:
        return self._clock.monotonic() < self._rests_until_s

    async def _from_copy(self, query: FeedQuery, stamp: int) -> FeedPage | None:
        """Read a page of the copy that is as new as *stamp*; None where there is none, which is then mended."""
        user = query.app, query.user_id
        try:
            page = await _page(self._copy, query, stamp)
        except Unavailable:
            self._rest()
            return None
        except msgspec.DecodeError:  # another version has written it
            page = None
        if page is None:
            self._mend(user)
        return page

    async def _follow(self, step: Step, ids: Sequence[NotificationId]) -> None:
        """Write into the copy what a step changed; what cannot be written is mended when the feed is next read."""
        user = step.app, step.user_id
        if self._rests:
            return
        self._copying[user] += 1
        try:
            async with self._places:
                now = await self._source.shown(ids) if ids else Shown()
                args = step.before, step.after, now.entries, now.deleted, self._clock.now()
                if not await self._copy.follow(user, *args):
                    self._mend(user)
        except Unavailable:
            self._rest()
        finally:
            self._copying[user] -= 1
            if not self._copying[user]:
                del self._copying[user]

    def _mend(self, user: User) -> None:
        """Copy a feed anew, beside what is being done, unless that is under way or there are too many."""
        if user not in self._mending and len(self._mending) < MENDED_AT_ONCE:
            self._mending[user] = asyncio.create_task(self._mend_soon(user))

    async def _mend_soon(self, user: User) -> None:
        try:
            with contextlib.suppress(Unavailable):  # the next reader tries again; the store reports its own outage
                await asyncio.sleep(PAUSE_S)
                if not self._copying[user]:
                    await copy_anew(self._source, self._copy, user, self._clock)
        finally:
            del self._mending[user]

    def _rest(self) -> None:
        self._rests_until_s = self._clock.monotonic() + REST_S

    def _count(self, result: str) -> None:
        self._telemetry.count(Metric.CACHE_LOOKUPS, cache="feed_copy", result=result)


async def copy_anew(source: FollowedFeed, copy: FeedCopy, user: User, clock: Clock) -> bool:
    """Copy the whole feed of a user; False where somebody came between: the next reader finds that out."""
    stamp, had = await source.stamp(*user), await copy.stamp(user)
    if stamp == had:
        return True
    if stamp is None:
        return await copy.drop(user)
    claim = await copy.claim(user, had)
    if claim is None:
        return False
    before: int | None = None
    while True:
        entries = await source.walk(*user, before, ROWS_A_ROUND)
        if not await copy.fill(user, claim, entries, clock.now()):
            return False
        if len(entries) < ROWS_A_ROUND:
            break
        before = entries[-1].place
    if await source.stamp(*user) != stamp:  # some of what was read is older than the rest
        return False
    return await copy.finish(user, claim, stamp)


async def _page(copy: FeedCopy, query: FeedQuery, stamp: int) -> FeedPage | None:
    """Read a page, in as many requests as there are rows to pass over; None where the copy is not of *stamp*."""
    user, before = (query.app, query.user_id), query.before
    is_sifted = query.folder is not Folder.INBOX or bool(query.types) or query.tag is not None
    at_once = max(query.limit + 1, ROWS_A_ROUND if is_sifted else 0)
    entries: list[Entry] = []
    while True:
        found = await copy.read(user, before, at_once)
        of = found.stamp if found.entries or before is None else await copy.stamp(user)
        if of != stamp:
            return None
        for entry in found.entries:
            if _is_in(entry, query):
                if len(entries) == query.limit:
                    return FeedPage(tuple(entries), entries[-1].place)
                entries.append(entry)
        if len(found.entries) < at_once:
            return FeedPage(tuple(entries))
        before = found.entries[-1].place


def _is_in(entry: Entry, query: FeedQuery) -> bool:
    content = entry.record.notification.content
    if (query.types and content.type not in query.types) or (query.tag is not None and query.tag not in content.tags):
        return False
    if query.folder is Folder.ARCHIVE:
        return entry.archived_at is not None
    return entry.archived_at is None and (query.folder is Folder.INBOX or entry.read_at is None)
