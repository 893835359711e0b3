"""The worker slots: a small mapped file on which workers write what must outlive them without a write to the store.

Layout (little endian): 64 slots of ``SLOT_BYTES``, one a worker::

    0   u32 process id      4   u32 state     8   f64 heartbeat (CLOCK_MONOTONIC, s)
    16  six notes, one a lane: u32 count, then up to 500 ids of 16 bytes

and after them the suspects: ``SUSPECTS`` entries of 24 bytes: id (16), u32 times noted alone, u32 in use. One lies in
the first free of the ``_PROBES`` places from where its id points; with none free it takes the place of an older one.
Only a worker writes its slot; only who buries a dead worker adds suspects; any worker clears one that it survived.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path

from msgspec import Struct

from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane

SLOTS = 64
SUSPECTS = 4_096
_PROBES = 16
_IDS_PER_NOTE = 500
_ID_BYTES = 16
_NOTE_BYTES = 4 + _IDS_PER_NOTE * _ID_BYTES
_HEAD = struct.Struct("<IId")
_COUNT = struct.Struct("<I")
_SUSPECT = struct.Struct("<16sII")
_LANES = tuple(Lane)
SLOT_BYTES = _HEAD.size + len(_LANES) * _NOTE_BYTES
_SUSPECTS_AT = SLOTS * SLOT_BYTES
_SIZE = _SUSPECTS_AT + SUSPECTS * _SUSPECT.size


class WorkerState(IntEnum):
    """The state that a worker reports of itself."""

    GONE = 0
    STARTING = 1
    READY = 2
    DEGRADED = 3
    DRAINING = 4


class Presence(Struct, frozen=True):
    """A slot as read."""

    slot: int
    pid: int
    state: WorkerState
    heartbeat_s: float


class WorkerSlots:
    """The mapped file; opening it creates it (OSError where there is no room). Not for use across machines."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, _SIZE)  # real blocks: a write into a hole kills when the disk is full
            self._map = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Let go of the mapping; the file stays."""
        self._map.close()

    def beat(self, slot: int, state: WorkerState, now_s: float) -> None:
        """Say that the worker of *slot* lives."""
        _HEAD.pack_into(self._map, slot * SLOT_BYTES, os.getpid(), state, now_s)

    def present(self) -> list[Presence]:
        """List every slot whose worker is not gone."""
        found = []
        for slot in range(SLOTS):
            pid, state, heartbeat_s = _HEAD.unpack_from(self._map, slot * SLOT_BYTES)
            if state != WorkerState.GONE:
                found.append(Presence(slot, pid, WorkerState(state), heartbeat_s))
        return found

    def note(self, slot: int, lane: Lane, ids: Sequence[NotificationId]) -> None:
        """Write down what the worker is about to touch; empty when it came through."""
        at = self._note_at(slot, lane)
        if ids:
            body = b"".join(ids[:_IDS_PER_NOTE])
            self._map[at + _COUNT.size : at + _COUNT.size + len(body)] = body
        _COUNT.pack_into(self._map, at, min(len(ids), _IDS_PER_NOTE))

    def bury(self, slot: int) -> int:
        """Mark a dead worker gone and turn its notes into suspects; how many there were."""
        found = 0
        for lane in _LANES:
            ids = self._noted(slot, lane)
            for notification_id in ids:
                self._suspect(notification_id, alone=len(ids) == 1)
            found += len(ids)
            self.note(slot, lane, ())
        _HEAD.pack_into(self._map, slot * SLOT_BYTES, 0, WorkerState.GONE, 0.0)
        return found

    def suspects(self) -> dict[NotificationId, int]:
        """Return what a worker that died had noted, and how often it was alone then."""
        entries = _SUSPECT.iter_unpack(self._map[_SUSPECTS_AT:_SIZE])
        return {NotificationId(notification_id): alone for notification_id, alone, in_use in entries if in_use}

    def clear(self, notification_id: NotificationId) -> None:
        """Delete the note of a notification that was processed without harm."""
        for at, suspect, _, in_use in self._places(notification_id):
            if in_use and suspect == notification_id:
                _SUSPECT.pack_into(self._map, at, b"", 0, 0)

    def _suspect(self, notification_id: NotificationId, *, alone: bool) -> None:
        places = list(self._places(notification_id))
        for at, suspect, times, in_use in places:
            if in_use and suspect == notification_id:
                _SUSPECT.pack_into(self._map, at, notification_id, times + alone, 1)
                return
        at = next((at for at, _, _, in_use in places if not in_use), places[0][0])
        _SUSPECT.pack_into(self._map, at, notification_id, int(alone), 1)

    def _places(self, notification_id: NotificationId) -> Iterator[tuple[int, bytes, int, int]]:
        """Yield each place where *notification_id* may lie, and its content: id, times alone, whether it is in use."""
        first = int.from_bytes(notification_id[-4:], "big")
        for step in range(_PROBES):
            at = _SUSPECTS_AT + (first + step) % SUSPECTS * _SUSPECT.size
            yield at, *_SUSPECT.unpack_from(self._map, at)

    def _noted(self, slot: int, lane: Lane) -> list[NotificationId]:
        at = self._note_at(slot, lane)
        (count,) = _COUNT.unpack_from(self._map, at)
        start = at + _COUNT.size
        ids = (self._map[start + n * _ID_BYTES : start + (n + 1) * _ID_BYTES] for n in range(count))
        return [NotificationId(each) for each in ids]

    def _note_at(self, slot: int, lane: Lane) -> int:
        return slot * SLOT_BYTES + _HEAD.size + _LANES.index(lane) * _NOTE_BYTES
