"""Room kept on the disk for the outcomes of what was accepted."""

from __future__ import annotations

import os
from pathlib import Path

_NO_ROOM_BYTES = 64 * 1024


class Reserve:
    """A file of really allocated bytes that is dropped when the disk is full; shared by all processes of a store."""

    def __init__(self, run_dir: Path, size_bytes: int, margin_bytes: int) -> None:
        self._path = run_dir / "reserve"
        self._size_bytes = size_bytes
        self._margin_bytes = margin_bytes

    def keep(self) -> bool:
        """Make the reserve if it is gone; False while there is no room for it and a margin to work in."""
        if self._exists():
            return True
        try:
            if self._room_bytes() < self._size_bytes + self._margin_bytes:
                return False
            self._allocate()
        except OSError:
            self.drop()
            return False
        return True

    def drop(self) -> None:
        """Free the reserve's bytes."""
        self._path.unlink(missing_ok=True)

    def is_disk_full(self) -> bool:
        """Tell whether there is almost no room left; SQLite does not always say why it could not write."""
        try:
            return self._room_bytes() < _NO_ROOM_BYTES
        except OSError:
            return False  # the disk is away altogether

    def _room_bytes(self) -> int:
        room = os.statvfs(self._path.parent)
        return room.f_bavail * room.f_frsize

    def _exists(self) -> bool:
        try:
            return self._path.stat().st_size >= self._size_bytes
        except FileNotFoundError:
            return False

    def _allocate(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._size_bytes)
        finally:
            os.close(descriptor)
