"""The number of tokens that were unknown lately, added up over all workers of a machine.

A mapped file: ``PLACES`` places of 16 bytes, one a worker: u32 answers, u32 unknown among them, f64 when that was
written (CLOCK_MONOTONIC, s). A worker writes its own place and reads them all.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Final

from waypost.ports.clock import Clock

PLACES: Final = 64
FRESH_S: Final = 600.0
"""A place that was not written for so long counts no more: its worker is gone, or has nothing to send."""
_PLACE = struct.Struct("<IId")
_SIZE: Final = PLACES * _PLACE.size


class Tally:
    """The counters of one worker, in the file at *path*, made where there is none; in memory without a path."""

    def __init__(self, path: Path | None, place: int, clock: Clock) -> None:
        self._at = place * _PLACE.size
        self._clock = clock
        self._map = mmap.mmap(-1, _SIZE) if path is None else _mapped(path)
        self.put(0, 0)

    def put(self, answers: int, unknown: int) -> None:
        """Write down this worker's counts."""
        _PLACE.pack_into(self._map, self._at, answers, unknown, self._clock.monotonic())

    def all(self) -> tuple[int, int]:
        """Sum up the answers, and the unknown tokens among them, of every worker that counted lately."""
        now_s = self._clock.monotonic()
        fresh = [place for place in _PLACE.iter_unpack(self._map) if 0 <= now_s - place[2] < FRESH_S]
        return sum(answers for answers, _, _ in fresh), sum(unknown for _, unknown, _ in fresh)


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, _SIZE)  # real blocks: a write into a hole kills when the disk is full
        return mmap.mmap(descriptor, _SIZE)
    finally:
        os.close(descriptor)
