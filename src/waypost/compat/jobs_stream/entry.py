"""An entry of the stream as it stands: its devices and their outcomes, and how a settlement changes it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.compat.jobs_stream.actions import TokenAction, action_of
from waypost.domain.channel import Channel
from waypost.domain.delivery import OpenTarget, Target
from waypost.domain.ids import DeviceId, NotificationId
from waypost.domain.job import Job
from waypost.domain.settlement import Again, Change
from waypost.domain.time import Instant, later
from waypost.ports.work import Settled


class LogStatus(StrEnum):
    """The status of a row of the log (requirements S0-19)."""

    PENDING = "pending"
    SENT = "sent"
    PARTIAL = "partial"
    FAILED = "failed"
    NO_TOKENS = "no_tokens"


class Tried(Struct, frozen=True, array_like=True):
    """One device of an entry."""

    device_id: DeviceId
    attempts: int = 0
    final: TokenAction | None = None
    """Its outcome, once there is one."""


class Note(Struct, frozen=True, array_like=True):
    """A note of an open entry, kept beside the stream, so that no delivery of it repeats what another has done."""

    row: str
    """Of the log."""
    devices: tuple[Tried, ...] | None = None
    """None until the first of them has an outcome, or is to be tried again."""


class JobEntry(Struct, frozen=True):
    """An entry in hand."""

    id: str
    deliveries: int
    job: Job
    note: Note
    waiting: frozenset[int] = frozenset()
    """Places in ``devices`` without an answer in this delivery."""
    to_retry: bool = False
    """A device is to be tried again by another delivery."""
    resumes_at: Instant | None = None
    """A device waits in hand until then."""
    is_forgotten: bool = False
    """The group does not know that it was handed out (a replica that was behind took over): nobody else has its row."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return not self.waiting and (self.is_forgotten or not (self.to_retry or self.resumes_at is not None))

    def targets(self, channel: Channel) -> tuple[OpenTarget, ...] | None:
        """List the devices still to be sent to; None where they are still to be found."""
        if self.note.devices is None:
            return None
        return tuple(
            OpenTarget(n, each.device_id, channel, each.attempts)
            for n, each in enumerate(self.note.devices)
            if each.final is None
        )


_notes: Final = msgspec.json.Decoder(Note)


def note_of(raw: bytes) -> Note | None:
    """Read a note as it was kept; None where it cannot be read."""
    try:
        return _notes.decode(raw)
    except msgspec.MsgspecError:
        return None


def begun(entry: JobEntry) -> JobEntry:
    """Return *entry* as it is leased: all its open devices are waiting for an answer."""
    devices = entry.note.devices or ()
    waiting = frozenset(n for n, each in enumerate(devices) if each.final is None)
    return replace(entry, waiting=waiting, to_retry=False, resumes_at=None)


def after(entry: JobEntry, settled: Settled, rest_ms: int | None = None) -> tuple[JobEntry, tuple[Change, ...]]:
    """Settle *entry*; return it and the changes that came too late: the first outcome of an attempt counts.

    *rest_ms* is given while the provider is known to be away: what it did not take stays in hand, for so long at least
    where the settlement says nothing, and spends no delivery.
    """
    if entry.note.devices is None and settled.targets is not None:
        entry = _found(entry, settled.targets)
    devices, waiting = list(entry.note.devices or ()), set(entry.waiting)
    stale: list[Change] = []
    for change in settled.changes:
        if change.n not in waiting or change.attempt != devices[change.n].attempts + 1:
            stale.append(change)
            continue
        waiting.discard(change.n)
        entry = _answered(entry, devices, change, rest_ms)
    note = replace(entry.note, devices=tuple(devices) if entry.note.devices is not None else None)
    return replace(entry, note=note, waiting=frozenset(waiting)), tuple(stale)


def _found(entry: JobEntry, targets: Sequence[Target]) -> JobEntry:
    note = replace(entry.note, devices=tuple(Tried(each.device_id) for each in targets))
    return begun(replace(entry, note=note))


def _answered(entry: JobEntry, devices: list[Tried], change: Change, rest_ms: int | None) -> JobEntry:
    action, device = action_of(change.settlement), devices[change.n]
    if action.is_final:
        devices[change.n] = replace(device, attempts=change.attempt, final=action)
        return entry
    if action is TokenAction.RETRY and rest_ms is None:
        devices[change.n] = replace(device, attempts=change.attempt)
        return replace(entry, to_retry=True)
    after_ms = rest_ms or 0 if action is TokenAction.RETRY else 0
    due_at = change.settlement.due_at if isinstance(change.settlement, Again) else later(change.at, after_ms)
    if change.made is not None:
        devices[change.n] = replace(device, attempts=change.attempt)
    return replace(entry, resumes_at=max(due_at, entry.resumes_at or due_at))


def status_of(devices: Sequence[Tried]) -> LogStatus:
    """Return how the log names what became of all *devices*; one without an outcome did not get it."""
    if not devices:
        return LogStatus.NO_TOKENS
    sent = sum(each.final is TokenAction.SENT for each in devices)
    if sent == len(devices):
        return LogStatus.SENT
    return LogStatus.PARTIAL if sent else LogStatus.FAILED


def id_of(stream: str, group: str, entry: str) -> NotificationId:
    """Derive the notification's id: the same for each delivery of an entry, and a time-ordered one as all are."""
    digest = hashlib.sha256(f"{stream}\0{group}\0{entry}".encode()).digest()
    made_at = int(entry.partition("-")[0]) & ((1 << 48) - 1)
    value = made_at << 80 | 0x7 << 76 | (digest[0] << 8 | digest[1]) % 0x1000 << 64 | 0b10 << 62
    return NotificationId((value | int.from_bytes(digest[2:10], "big") >> 2).to_bytes(16, "big"))
