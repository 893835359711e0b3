"""The stream itself as the queue: what is leased was read from it, what is settled is logged, then acknowledged.

An entry in hand is said to be worked on every third of the idle time, so that no other consumer takes it over; one that
must be tried again is let go of, and comes back by the stream's own rules. Of an open entry a note is kept beside the
stream: the row of the log, and what became of each device. So a delivery of it repeats nothing that another has done.

    taken → its row is opened, the note is kept → leased → outcomes → the note → dead tokens → the row's end → XACK
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.compat.jobs_stream.actions import TokenAction, action_of, fault_of
from waypost.compat.jobs_stream.entry import JobEntry, LogStatus, Note, Tried, after, begun, id_of, note_of, status_of
from waypost.compat.jobs_stream.log import Closed, JobLog
from waypost.compat.jobs_stream.settings import StreamSettings
from waypost.compat.jobs_stream.tokens import TokenLookup
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.drafting import ContentCheck
from waypost.domain.errors import InvalidRequest, Unavailable
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.job import Job, read_job
from waypost.domain.notification import Lane, Notification
from waypost.domain.progress import Stale
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import TTL_LIMIT_S
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.ports.clock import Clock
from waypost.ports.jobs import HandedJob, Jobs
from waypost.ports.work import Lease, Leases, Settled, WorkItem
from waypost.telemetry import Event, Telemetry

LANE: Final = Lane.HIGH
HAND_LIMIT: Final = 5_000
"""Entries in hand at most; past it nothing more is taken from the stream."""


class Beside(Struct, frozen=True):
    """Stores that a job needs beside the stream."""

    log: JobLog
    tokens: TokenLookup
    app: AppId
    channel: Channel
    check: ContentCheck
    """What the channel could never send."""


class StreamWork(Leases):
    """See Leases. One lane; it takes no work in, and keeps no time but that of what it has in hand."""

    def __init__(
        self, jobs: Jobs, beside: Beside, settings: StreamSettings, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._jobs = jobs
        self._beside = beside
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._tokens = 0
        self._taken: dict[str, HandedJob] = {}
        """Read, and not yet begun: the database was away."""
        self._hand: dict[NotificationId, JobEntry] = {}
        self._resting: dict[NotificationId, JobEntry] = {}
        """In hand, and to be leased again at their time."""
        self._said_s = clock.monotonic()
        self.is_away: Callable[[], bool] = lambda: False
        """Whether the provider is known to be away: what it does not take then (a probe) spends no delivery."""

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Leases; what rests comes first. An entry delivered too often or unreadable is dealt with on the way."""
        self._tokens += 1
        if lane is not LANE:
            return Lease(self._tokens, lane, ())
        now = self._clock.now()
        again = [id_ for id_, entry in self._resting.items() if (entry.resumes_at or now) <= now][:n]
        items = [self._item(id_, self._resting.pop(id_), now) for id_ in again]
        try:
            items += await self._fresh(n - len(items), now)
        except BaseException:
            self._resting |= {each.notification.id: self._hand.pop(each.notification.id) for each in items}
            raise
        return Lease(self._tokens, lane, tuple(items))

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Leases: asked of Redis, for whoever stood still may have been given up."""
        await self.say()
        held = {id_ for id_, each in self._hand.items() if not each.is_forgotten}
        return all(each.notification.id in held for each in lease.items)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Leases; only once everything is written is it known here, so that it may be repeated."""
        if self._clock.monotonic() - self._said_s > self._settings.min_idle_ms / 2 / SECOND_MS:
            await self.say()
        moved: dict[NotificationId, JobEntry] = {}
        stale: list[Stale] = []
        rest_ms = self._settings.min_idle_ms if self.is_away() else None
        for each in settled:
            id_ = each.notification.id
            before = moved.get(id_) or self._hand.get(id_)
            if before is None:
                stale += each.refused()
                continue
            moved[id_], late = after(before, each, rest_ms)
            stale += [Stale(id_, change.n, change.attempt) for change in late]
            if each.given_back:
                moved[id_] = replace(moved[id_], waiting=frozenset(), resumes_at=self._clock.now())
        await self._write(moved, settled)
        self._known(moved, settled)
        return stale

    async def say(self) -> None:
        """Tell the stream what is in hand, begun or not; what is another's by now is let go of."""
        at_s = self._clock.monotonic()
        in_hand = {each.id for each in (*self._hand.values(), *self._resting.values())} | self._taken.keys()
        held = await self._jobs.hold(list(in_hand))
        for id_, each in self._hand.items():
            if each.is_forgotten and each.id in held:  # handed out once more, and to this consumer
                self._hand[id_] = replace(each, is_forgotten=False)
        if gone := in_hand - held:
            await self._let_go(gone)
        self._said_s = at_s

    async def _let_go(self, gone: Set[str]) -> None:
        """Let go of entries that another consumer has, or that the group forgot.

        Nobody else knows the row of what was forgotten: it is closed here, with the answers that are still under way.
        """
        notes = [note_of(raw) for raw in (await self._jobs.others(list(gone))).values() if raw is not None]
        theirs = {note.row for note in notes if note is not None}
        ends = [_end(each, None) for each in self._resting.values() if each.id in gone and each.note.row not in theirs]
        taken = [note_of(self._taken[entry].note or b"") for entry in gone & self._taken.keys()]
        ends += [_closed(note.row, None, None) for note in taken if note is not None and note.row not in theirs]
        if ends:
            await self._beside.log.close(ends)
        for entry in gone:
            self._taken.pop(entry, None)
        self._resting = {id_: each for id_, each in self._resting.items() if each.id not in gone}
        for id_, each in list(self._hand.items()):
            if each.id in gone and each.note.row in theirs:
                del self._hand[id_]
            elif each.id in gone:
                self._hand[id_] = replace(each, is_forgotten=True)

    @property
    def rests(self) -> bool:
        """Whether anything waits in hand for its time."""
        return bool(self._resting)

    async def _fresh(self, n: int, now: Instant) -> list[WorkItem]:
        room = min(n, HAND_LIMIT - len(self._hand) - len(self._resting) - len(self._taken))
        if room > 0 and not self._taken:
            known = {each.id for each in (*self._hand.values(), *self._resting.values())}
            handed = await self._jobs.take(room)
            self._taken |= {each.entry: each for each in handed if each.entry not in known}
        begun_now = list(self._taken.values())
        entries = await self._entries(begun_now) if begun_now else []
        for each in begun_now:
            self._taken.pop(each.entry, None)
        return [self._item(self._id(each), each, now) for each in entries]

    async def _entries(self, handed: Sequence[HandedJob]) -> list[JobEntry]:
        """Return the entries to be sent, with their rows open; settle the others."""
        readable = [(each, job) for each in handed if (job := await self._read(each)) is not None]
        limit = self._settings.max_deliveries
        over = [(each, job) for each, job in readable if each.deliveries >= limit]
        for each, job in over:
            await self._give_up(each, job)
        noted = [(each, job, note_of(each.note or b"")) for each, job in readable if each.deliveries < limit]
        rows = [note.row for _, _, note in noted if note is not None]
        known = await self._beside.log.known(rows) if rows else {}
        again = [
            JobEntry(each.entry, each.deliveries, job, note)
            for each, job, note in noted
            if note is not None and note.row in known
        ]
        first = [(each, job) for each, job, note in noted if note is None or note.row not in known]
        entries = await self._still_open(again, {row for row, has_end in known.items() if has_end}) if again else []
        return entries + (await self._opened(first) if first else [])

    async def _still_open(self, again: Sequence[JobEntry], ended: Set[str]) -> list[JobEntry]:
        """Return the entries with a device left to send to; the others had all outcomes when somebody died."""
        through = [each for each in again if each.note.devices is not None and not each.targets(self._beside.channel)]
        unsaid = [_end(each, None) for each in through if each.note.row not in ended]
        if unsaid:
            await self._beside.log.close(unsaid)
        over = [each for each in again if each.note.row in ended or each in through]
        if over:
            await self._jobs.finish([each.id for each in over])
        return [each for each in again if each not in over]

    async def _opened(self, first: Sequence[tuple[HandedJob, Job]]) -> list[JobEntry]:
        async def keep(rows: Sequence[str | None]) -> None:
            given = zip(first, rows, strict=True)
            notes = {each.entry: msgspec.json.encode(Note(row)) for (each, _), row in given if row is not None}
            await self._jobs.keep(notes)
            # Whether the rows are there is not known if the database goes away now.
            for entry in notes.keys() & self._taken.keys():
                self._taken[entry] = replace(self._taken[entry], note=notes[entry])

        rows = await self._beside.log.open([(each.entry, job) for each, job in first], keep)
        opened = []
        for (each, job), row in zip(first, rows, strict=True):
            if row is None:
                self._tell_unreadable(each, "the log refuses its row")  # it comes again: the owner may mend the table
            else:
                opened.append(JobEntry(each.entry, each.deliveries, job, Note(row)))
        return opened

    async def _read(self, handed: HandedJob) -> Job | None:
        """Read the job of an entry; one that is none, or could never be sent, is acknowledged."""
        try:
            job = read_job(handed.fields)
        except InvalidRequest as wrong:
            await self._put_aside(handed, str(wrong))
            return None
        faults = self._beside.check(_content(job), Kind.VISIBLE)
        if faults:
            await self._put_aside(handed, str(InvalidRequest(tuple(faults))))
            return None
        return job

    async def _put_aside(self, handed: HandedJob, why: str) -> None:
        self._tell_unreadable(handed, why)
        await self._jobs.finish([handed.entry])
        self._taken.pop(handed.entry, None)

    def _tell_unreadable(self, handed: HandedJob, why: str) -> None:
        self._telemetry.event(Event.NOTIFICATIONS_UNREADABLE, job_id=handed.entry, why=why)

    async def _give_up(self, handed: HandedJob, job: Job) -> None:
        """End an entry that was delivered too often; its row says what had been sent until then."""
        note = note_of(handed.note or b"")
        if note is not None:
            await self._beside.log.close([_closed(note.row, note.devices or None, None)])
        self._telemetry.event(
            Event.NOTIFICATIONS_MAX_RETRIES,
            job_id=handed.entry,
            user_id=job.user_id,
            deliveries=handed.deliveries,
        )
        await self._jobs.finish([handed.entry])
        self._taken.pop(handed.entry, None)

    def _item(self, id_: NotificationId, entry: JobEntry, now: Instant) -> WorkItem:
        self._hand[id_] = entry = begun(entry)
        return WorkItem(self._notification(id_, entry.job, now), entry.targets(self._beside.channel))

    def _notification(self, id_: NotificationId, job: Job, now: Instant) -> Notification:
        return Notification(
            id=id_,
            app=self._beside.app,
            caller=CallerId(self._settings.stream),
            user_id=UserId(job.user_id),
            content=_content(job),
            created_at=now,
            expires_at=later(now, TTL_LIMIT_S * SECOND_MS),
            ttl_ms=TTL_LIMIT_S * SECOND_MS,
            lane=LANE,
            urgency=Urgency.HIGH,
        )

    def _id(self, entry: JobEntry) -> NotificationId:
        return id_of(self._settings.stream, self._settings.group, entry.id)

    async def _write(self, moved: Mapping[NotificationId, JobEntry], settled: Sequence[Settled]) -> None:
        ends = {id_: each for id_, each in moved.items() if each.is_over}
        open_ = [each for id_, each in moved.items() if id_ not in ends and each.note.devices is not None]
        await self._keep(open_)
        verdicts = {each.notification.id: each.verdict for each in settled}
        try:
            await self._remove(_dead(moved, settled))
            if ends:
                await self._beside.log.close([_end(each, verdicts.get(id_)) for id_, each in ends.items()])
        except Unavailable:  # the database may be away for longer than this process lives
            await self._keep([each for each in ends.values() if each.note.devices is not None])
            raise
        if ends:
            await self._jobs.finish([each.id for each in ends.values()])

    async def _remove(self, dead: Sequence[tuple[DeviceId, bytes]]) -> None:
        if dead:
            removed = await self._beside.tokens.remove(dead)
            self._telemetry.event(Event.TOKENS_EVICTED, count=removed)

    async def _keep(self, entries: Sequence[JobEntry]) -> None:
        if entries:
            await self._jobs.keep({each.id: msgspec.json.encode(each.note) for each in entries})

    def _known(self, moved: Mapping[NotificationId, JobEntry], settled: Sequence[Settled]) -> None:
        """Acknowledge what was written, and tell operators of credentials."""
        for id_, each in moved.items():
            if each.waiting:
                self._hand[id_] = each
                continue
            self._hand.pop(id_, None)
            if not each.is_over and not each.to_retry:
                self._resting[id_] = each
        for told in settled:
            entry = moved.get(told.notification.id)
            codes = {code for change in told.changes if (code := fault_of(change)) is not None}
            for code in codes if entry is not None else ():
                self._telemetry.event(
                    Event.NOTIFICATIONS_FCM_FATAL,
                    job_id=entry.id if entry is not None else "",
                    credential=f"{self._beside.app}/{self._beside.channel}",
                    code=code,
                )


def _content(job: Job) -> Content:
    return Content(title=job.title, body=job.body, data=job.data, badge=job.badge, android_channel=job.channel)


def _end(entry: JobEntry, verdict: NotificationStatus | None) -> Closed:
    return _closed(entry.note.row, entry.note.devices, verdict)


def _closed(row: str, devices: Sequence[Tried] | None, verdict: NotificationStatus | None) -> Closed:
    """Return how a row ends; *devices* is None where they were never looked up."""
    has_failed = devices is None or verdict is NotificationStatus.EXPIRED
    status = LogStatus.FAILED if has_failed else status_of(devices or ())
    return Closed(row, status, len(devices or ()), sum(each.final is TokenAction.SENT for each in devices or ()))


def _dead(moved: Mapping[NotificationId, JobEntry], settled: Sequence[Settled]) -> list[tuple[DeviceId, bytes]]:
    """Return the rows whose tokens are dead, each with the hash of the token that was tried."""
    return [
        (devices[change.n].device_id, change.made.token_hash)
        for each in settled
        if (devices := (moved[each.notification.id].note.devices or ()) if each.notification.id in moved else ())
        for change in each.changes
        if action_of(change.settlement) is TokenAction.REMOVE and change.made is not None
    ]
