"""Limits that the processes of one machine share, in a mapped file of fixed size.

Layout: ``ROWS`` rows for windows, ``BUCKET_ROWS`` for buckets, each of ``PER_ROW`` slots of 48 bytes (native order)::

    0   digest of the name (16)    16  f64 at, ms    24  f64 left    32  f64 since, ms    40  f64 forgettable at, ms

A name lies in the row that its digest points to. With no slot free there it takes the place of the one that is nearest
to being forgotten anyway. Buckets, one for each credential, are apart: of windows there are names without end, and many
last longer than a bucket takes to be full again. Each row is locked by a lock of the system on one byte of the file,
which ends with the process that holds it. ``at`` is written before ``left``: whoever dies between the two has given
nothing away.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.limits import Granted, Limit, Remaining, TokenBucket, Wait, forgettable_at_ms, take
from waypost.ports.clock import Clock

ROWS: Final = 4_096
BUCKET_ROWS: Final = 256
PER_ROW: Final = 16
TRIES: Final = 500
"""For a lock, which is held for microseconds: then its holder is frozen. About 0.05 s, for which the event loop stands
still; on a busy machine longer, and so is its holder."""
PAUSE_S: Final = 0.000_05
"""The pause before asking again: the holder may have to wait for its interpreter, and needs the processor more."""
AWAY_S: Final = 10.0
"""Seconds for which a row is not asked for again whose holder is frozen."""

_SLOT: Final = struct.Struct("=16sdddd")
_ROW_BYTES: Final = PER_ROW * _SLOT.size
_SIZE: Final = (ROWS + BUCKET_ROWS) * _ROW_BYTES


class MappedLimiter:
    """A limiter in a mapped file; opening makes it (OSError where there is no room). One for each file in a process.

    It goes by the wall clock, which all processes of a machine have in common; the file outlives them.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._away: dict[int, float] = {}
        """Until when each row whose holder is frozen counts as away."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(self._file, 0, _SIZE)  # real blocks: a write into a hole kills when the disk is full
        self._map = mmap.mmap(self._file, _SIZE)

    def close(self) -> None:
        """Let go of the file, which stays."""
        self._map.close()
        os.close(self._file)

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """See Limiter; Unavailable where another process is frozen in the middle of one."""
        digest = blake2b(name.encode(), digest_size=16).digest()
        number = int.from_bytes(digest[:4], "big")
        row = ROWS + number % BUCKET_ROWS if isinstance(limit, TokenBucket) else number % ROWS
        with self._locked(row):
            now_ms = self._clock.now()
            place, level = self._find(row, digest)
            level, answer = take(limit, level, n, now_ms)
            kept = digest, level.at_ms, level.left, level.since_ms, forgettable_at_ms(limit, level)
            _SLOT.pack_into(self._map, place, *kept)
        return answer

    def _find(self, row: int, digest: bytes) -> tuple[int, Remaining | None]:
        """Find where *digest* lies, or what makes room for it, and its level."""
        start = row * _ROW_BYTES
        slots = self._map[start : start + _ROW_BYTES]  # to search the mapping itself reads behind its end (gh-105235)
        at = slots.find(digest)
        if at >= 0 and at % _SLOT.size == 0:
            _, at_ms, left, since_ms, _ = _SLOT.unpack_from(slots, at)
            return start + at, Remaining(left, at_ms, since_ms)
        soonest = min(range(PER_ROW), key=[slot[4] for slot in _SLOT.iter_unpack(slots)].__getitem__)
        return start + soonest * _SLOT.size, None

    @contextmanager
    def _locked(self, row: int) -> Iterator[None]:
        self._lock(row)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, row)

    def _lock(self, row: int) -> None:
        if not self._away or self._away.get(row, 0.0) <= self._clock.monotonic():
            for _ in range(TRIES):
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, row)
                except BlockingIOError:
                    time.sleep(PAUSE_S)  # nothing tells when a lock of another process is free
                else:
                    self._away.pop(row, None)
                    return
            self._away[row] = self._clock.monotonic() + AWAY_S
        raise Unavailable("a process is frozen that holds a limit", ErrorCode.STORAGE_BUSY)
