"""The lock for one ``serve`` a store: a second is refused, and the system frees it when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from waypost.domain.errors import ConfigurationError


class ServeLock:
    """A lock that the supervisor (or the single worker) holds for its whole life; workers do not inherit it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> ServeLock:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 16, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise ConfigurationError("store", f"another waypost serves this store (process {holder})") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        os.close(self._descriptor)
