"""The feeds of users: the notifications that an app shows, newest first, and what their readers did with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.time import Instant
from waypost.domain.words import Words
from waypost.ports.views import NotificationRecord

PLACES_A_ROW: Final = 1_000_000
"""The places that one row of the journal has, more than it has moves: so they grow as its positions do."""


class Mark(Words):
    """An act of a reader on entries of the feed."""

    SEEN = "seen"
    """The list with them was opened."""
    READ = "read"
    """Each by itself was opened; what is read is seen."""
    UNREAD = "unread"
    ARCHIVED = "archived"
    """Put away, and read."""
    UNARCHIVED = "unarchived"
    DELETED = "deleted"
    RESTORED = "restored"
    """Not deleted after all."""


class Folder(Words):
    """A part of a feed."""

    INBOX = "inbox"
    """What is neither archived nor deleted."""
    UNREAD = "unread"
    """The part of the inbox that is not read."""
    ARCHIVE = "archive"


class NewEntry(Struct, frozen=True):
    """A notification that came into its user's feed."""

    app: AppId
    user_id: UserId
    notification_id: NotificationId
    n: int
    """The number of the target that is the feed."""
    place: int
    """The place in the feed: later ones have higher numbers, and no two of a user the same."""
    at: Instant


class Entry(Struct, frozen=True):
    """A notification in a feed, with its reader's marks."""

    record: NotificationRecord
    place: int
    shown_at: Instant
    """The time when it came into the feed."""
    seen_at: Instant | None = None
    read_at: Instant | None = None
    archived_at: Instant | None = None


class FeedQuery(Struct, frozen=True):
    """A filter for entries of a user: newest first, at most *limit*, from below the place *before*."""

    app: AppId
    user_id: UserId
    folder: Folder = Folder.INBOX
    types: tuple[str, ...] = ()
    """The types; of any where there are none."""
    before: int | None = None
    limit: int = 50
    tag: str | None = None
    """The tag; with any or none where it is None."""


class NewsQuery(Struct, frozen=True):
    """A filter for the entries of an inbox above the place *after*."""

    app: AppId
    user_id: UserId
    after: int


class FeedPage(Struct, frozen=True):
    """A page of a feed; *before* asks for the next one, None at the end."""

    entries: tuple[Entry, ...]
    before: int | None = None


class FeedCounts(Struct, frozen=True):
    """The number of entries of an inbox that are not read, and not seen."""

    unread: int = 0
    unseen: int = 0
    newest: int = 0
    """The highest place of the feed, also of what was deleted; 0 where it is empty."""


class UnreadQuery(Struct, frozen=True):
    """A question for the unread entries of a user, and for which of *ids* are in the feed."""

    app: AppId
    user_id: UserId
    ids: frozenset[NotificationId] = frozenset()


class Unread(Struct, frozen=True):
    """The number of unread entries of an inbox, and the notifications asked for that had come into the feed by then."""

    unread: int = 0
    there: frozenset[NotificationId] = frozenset()
    """Those that came, whatever was done with them since."""


class Marking(Struct, frozen=True):
    """An order to mark the entries *ids* of a user, or everything up to the entry *until*."""

    app: AppId
    user_id: UserId
    mark: Mark
    at: Instant
    ids: tuple[NotificationId, ...] = ()
    until: NotificationId | None = None
    vouched: bool = False
    """Whether *ids* are known to be the user's: then they are marked though they are in no feed (yet)."""
    is_told: bool = False
    """Whether the user's other devices are told of what it changes."""
    device_id: DeviceId | None = None
    """The device that it came from; None where nobody said."""


class MarkedEntry(Struct, frozen=True):
    """An entry that a marking changed."""

    notification_id: NotificationId
    n: int | None
    """The number of the target that is the feed; None where it is in none."""


class Step(Struct, frozen=True):
    """A change of one feed: from the stamp *before* it, None where it had none, to the one *after* it."""

    app: AppId
    user_id: UserId
    before: int | None
    after: int


class Shown(Struct, frozen=True):
    """Entries as they are now, and the places of those that were asked for and are deleted."""

    entries: tuple[Entry, ...] = ()
    deleted: tuple[int, ...] = ()


Saying = Callable[[Sequence[Notification]], Awaitable[Sequence[Notification]]]
"""Returns notifications with the words that their users read, where what is stored names a template."""


class FeedPages(Protocol):
    """Reads what is looked at most of feeds; as new as the feed when it is asked."""

    async def page(self, query: FeedQuery) -> FeedPage:
        """See Feed."""
        ...

    async def counts(self, app: AppId, user_id: UserId) -> FeedCounts:
        """Count what is unread and unseen of one user."""
        ...

    async def forget(self, app: AppId, user_id: UserId) -> None:
        """Keep nothing of a user."""
        ...


class Feed(Protocol):
    """The feeds of all users. What is marked is shown by ``Views.detail`` and ``Views.page``, too.

    Entries leave with their notifications, and with an erased user. Whatever is said to be written is durable.
    """

    async def add(self, entries: Sequence[NewEntry]) -> list[NewEntry]:
        """Add what is not there yet, and return that; marks that came before their entry stay."""
        ...

    async def mark(self, marking: Marking) -> list[MarkedEntry]:
        """Mark entries, and return those that this changed; unknown ids, and those of others, change nothing."""
        ...

    async def meant(self, marking: Marking) -> list[MarkedEntry]:
        """Return the entries that a marking would change now."""
        ...

    async def page(self, query: FeedQuery) -> FeedPage:
        """Return a page of a feed, newest first."""
        ...

    async def news(self, queries: Sequence[NewsQuery], limit: int) -> list[list[Entry]]:
        """Return for each query at most *limit* entries, oldest first."""
        ...

    async def entries(self, ids: Sequence[NotificationId]) -> list[Entry]:
        """Return those of *ids* that are in an inbox, in any order."""
        ...

    async def counts(self, users: Sequence[tuple[AppId, UserId]]) -> list[FeedCounts]:
        """Count what is unread and unseen of each user, by the rows: in the order asked."""
        ...

    async def unread(self, queries: Sequence[UnreadQuery]) -> list[Unread]:
        """Count what is unread of each user, in the order asked; number and entries are of one moment."""
        ...

    async def stamp(self, app: AppId, user_id: UserId) -> int | None:
        """Return a number that is another one after each addition and mark; None of a feed that never had any.

        What was read after it was, is true as long as it stays.
        """
        ...

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """Delete all entries and marks of a user."""
        ...


class FollowedFeed(Feed, Protocol):
    """A feed that can be copied: it says of each change which stamp it came after.

    So a copy that has the stamp from before a change, and then what it changed, is as new as the stamp from after it.
    """

    async def add_by_steps(self, entries: Sequence[NewEntry]) -> tuple[list[NewEntry], list[Step]]:
        """Do as ``add`` does, and return the step of each user, too."""
        ...

    async def mark_by_steps(self, marking: Marking) -> tuple[list[MarkedEntry], list[Step]]:
        """Do as ``mark`` does, and return its step, too."""
        ...

    async def shown(self, ids: Sequence[NotificationId]) -> Shown:
        """Return those of *ids* that are in a feed, archived ones too, in any order."""
        ...

    async def walk(self, app: AppId, user_id: UserId, before: int | None, n: int) -> list[Entry]:
        """Return the next *n* entries of all folders below the place *before*, newest first; fewer at the end."""
        ...
