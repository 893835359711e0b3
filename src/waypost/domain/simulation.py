"""Simulation: what would have become of notifications under one policy, and the difference that another makes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.channel_steps import steps_of
from waypost.domain.ids import NotificationId, UserId, format_id
from waypost.domain.local_time import local_at
from waypost.domain.notification import Notification
from waypost.domain.submission import Defaults
from waypost.domain.time import SECOND_MS, Instant
from waypost.domain.words import Words


class Ending(Words):
    """The end that a notification would come to."""

    SENT = "sent"
    """At its time."""
    DEFERRED = "deferred"
    """Sent, but later: a rule put it off."""
    MERGED = "merged"
    """In quiet hours: a part of a digest."""
    DEGRADED = "degraded"
    """Over a cap: in the feed alone."""
    FEED = "feed"
    """In the feed alone: nothing else was named, or wanted."""
    SUPPRESSED = "suppressed"
    EXPIRED = "expired"
    FAILED = "failed"
    NO_TARGETS = "no_targets"
    REFUSED = "refused"
    """Not accepted at all."""


class Happened(Struct, frozen=True):
    """The end of one target: taken by its provider, as all that is sent in a simulation, or not sent."""

    n: int
    at: Instant
    is_feed: bool = False
    ending: Ending = Ending.SENT
    reason: str | None = None


class Fate(Struct, frozen=True):
    """The fate of a notification, as its user sees it."""

    ending: Ending
    reason: str | None = None
    """The rule that put it off, or the reason why it was not sent, or is in the feed alone."""
    at: Instant | None = None
    """When it disturbs its user; None where it does not."""


_FIRST: Final = (Ending.MERGED, Ending.DEGRADED, Ending.FEED, Ending.EXPIRED, Ending.SUPPRESSED, Ending.FAILED)
"""What counts of several targets of which none is sent, but to the feed."""


def fate_of(due: Instant, happened: Sequence[Happened], put_off_by: str | None) -> Fate:
    """Return what becomes of a notification that was to be sent at *due*, by the ends of its targets."""
    loud = [each.at for each in happened if each.ending is Ending.SENT and not each.is_feed]
    if loud:
        at = min(loud)
        return Fate(Ending.DEFERRED, put_off_by, at) if at >= due + SECOND_MS else Fate(Ending.SENT, None, at)
    quiet = [replace(each, ending=Ending.FEED) if each.ending is Ending.SENT else each for each in happened]
    for ending in _FIRST:
        reasons = [each.reason for each in quiet if each.ending is ending]
        if reasons and ending is Ending.FEED:
            return Fate(ending, next((each.reason or each.ending for each in happened if not each.is_feed), None))
        if reasons:
            return Fate(ending, reasons[0] if ending in _REASONED else None)
    return Fate(Ending.NO_TARGETS)


_REASONED: Final = (Ending.SUPPRESSED, Ending.FAILED)


def under(notification: Notification, then: Defaults, now: Defaults) -> Notification:
    """Return a recorded notification as defaults *now* would have it: what equals those of *then* was not said.

    That is its time to live and its channels.
    """
    content, kind = notification.content, notification.content.type
    was = notification.ttl_ms
    ttl_ms = now.ttl_of(kind) * SECOND_MS if was == then.ttl_of(kind) * SECOND_MS else was
    channels = content.channels
    if content.to is None and not notification.device_ids and channels == steps_of(then.channels_of(kind)):
        channels = steps_of(now.channels_of(kind))
    if (ttl_ms, channels) == (was, content.channels):
        return notification
    content = replace(content, channels=channels)
    expires_at = Instant(notification.expires_at - was + ttl_ms)
    return replace(notification, ttl_ms=ttl_ms, expires_at=expires_at, content=content)


class Told(Struct, frozen=True):
    """A notification, and its fate under both policies."""

    id: NotificationId
    user_id: UserId
    type: str
    zone: str
    before: Fate
    after: Fate


class Digest(Struct, frozen=True):
    """A digest that a user would get."""

    user_id: UserId
    zone: str
    at: Instant
    is_after: bool
    """Whether it is under the proposed policy."""


class Ended(Struct, frozen=True, order=True):
    """The number of notifications that end in one way, before and after."""

    ending: Ending
    reason: str | None
    before: int
    after: int


class Moved(Struct, frozen=True):
    """The number of notifications that change from one end to another."""

    was: str
    becomes: str
    count: int
    example: str
    """The id of one of them."""


class OfType(Struct, frozen=True):
    """The ends of the notifications of one type."""

    type: str
    ends: tuple[Ended, ...]


class OfHour(Struct, frozen=True):
    """The number of messages that disturb users in one hour of their day, digests too."""

    hour: int
    before: int
    after: int


class OfUser(Struct, frozen=True):
    """The number of messages that disturb one user, digests too, and of notifications that fare otherwise."""

    user_id: str
    before: int
    after: int
    changed: int


class Difference(Struct, frozen=True):
    """The difference that a proposed policy makes."""

    notifications: int
    users: int
    changed: int
    users_changed: int
    digests: OfHour
    """The digests before and after; its hour is -1."""
    ends: tuple[Ended, ...]
    moves: tuple[Moved, ...]
    types: tuple[OfType, ...]
    hours: tuple[OfHour, ...]
    top_users: tuple[OfUser, ...]
    """Those for whom most changes."""


class Tally:
    """The sums of a simulation, as it goes on."""

    def __init__(self) -> None:
        self._ends: Counter[tuple[str, Ending, str | None, bool]] = Counter()
        self._moves: Counter[tuple[str, str]] = Counter()
        self._examples: dict[tuple[str, str], str] = {}
        self._hours: Counter[tuple[int, bool]] = Counter()
        self._loud: Counter[tuple[UserId, bool]] = Counter()
        self._changed: Counter[UserId] = Counter()
        self._users: set[UserId] = set()
        self._digests = [0, 0]
        self._told = 0

    def add(self, told: Told) -> None:
        """Count one notification."""
        self._told += 1
        self._users.add(told.user_id)
        for is_after, fate in ((False, told.before), (True, told.after)):
            self._ends[told.type, fate.ending, fate.reason, is_after] += 1
            self._disturb(told.user_id, told.zone, fate.at, is_after=is_after)
        if told.before != told.after:
            self._changed[told.user_id] += 1
            move = _said(told.before), _said(told.after)
            self._moves[move] += 1
            self._examples.setdefault(move, format_id(told.id))

    def add_digest(self, digest: Digest) -> None:
        """Count one digest."""
        self._digests[digest.is_after] += 1
        self._disturb(digest.user_id, digest.zone, digest.at, is_after=digest.is_after)

    def _disturb(self, user_id: UserId, zone: str, at: Instant | None, *, is_after: bool) -> None:
        if at is not None:
            self._loud[user_id, is_after] += 1
            self._hours[local_at(at, zone).hour, is_after] += 1

    def difference(self, top: int) -> Difference:
        """Return the sums, with the *top* users for whom most changes."""
        users = [
            OfUser(user, self._loud[user, False], self._loud[user, True], self._changed[user]) for user in self._users
        ]
        users.sort(key=lambda it: (-abs(it.after - it.before), -it.changed, it.user_id))
        kinds = sorted({kind for kind, *_ in self._ends})
        moves = ((move, count) for move, count in self._moves.most_common())
        return Difference(
            notifications=self._told,
            users=len(self._users),
            changed=self._changed.total(),
            users_changed=len(self._changed),
            digests=OfHour(-1, *self._digests),
            ends=self._ended(None),
            moves=tuple(Moved(*move, count, self._examples[move]) for move, count in moves),
            types=tuple(OfType(kind, self._ended(kind)) for kind in kinds),
            hours=tuple(OfHour(hour, self._hours[hour, False], self._hours[hour, True]) for hour in range(24)),
            top_users=tuple(each for each in users[:top] if each.changed or each.before != each.after),
        )

    def _ended(self, kind: str | None) -> tuple[Ended, ...]:
        sums: Counter[tuple[Ending, str | None, bool]] = Counter()
        for (of, ending, reason, is_after), count in self._ends.items():
            if kind in (None, of):
                sums[ending, reason, is_after] += count
        ways = sorted({(ending, reason) for ending, reason, _ in sums}, key=lambda it: (_ORDER[it[0]], it[1] or ""))
        return tuple(Ended(*way, sums[(*way, False)], sums[(*way, True)]) for way in ways)


_ORDER: Final = {ending: n for n, ending in enumerate(Ending)}


def _said(fate: Fate) -> str:
    return fate.ending if fate.reason is None else f"{fate.ending} ({fate.reason})"
