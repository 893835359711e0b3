"""The limits of the machine, or of the part of it that a service is given."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from waypost.bootstrap.doctor.findings import Finding, ok, problem, size, skipped, warning
from waypost.bootstrap.listening import BACKLOG
from waypost.config import Config
from waypost.runtime.disk import FULL_SHARE, LOW_SHARE
from waypost.stores.sql.connection import database_path
from waypost.stores.sql.settings import is_postgres

LIMITS: Final = "limits"
_FILES_FOR_ONE: Final = 1_024
"""Files of one worker: connections to providers, the store and callers."""
WORKER_BYTES: Final = 200 * 1_000_000
"""Memory of a worker at its peak: 184 MB were measured (docs/internals/performance.md)."""
_FEW_INODES: Final = 1_000
_ROOT: Final = Path("/")


def look_at_machine(config: Config | None, root: Path = _ROOT) -> Iterator[Finding]:
    """Look at open files, memory, the disk and the kernel's queue of connections; *root* has /proc and /sys."""
    workers = 1 if config is None else config.processes
    yield _open_files(workers)
    yield _memory(workers, root)
    yield _somaxconn(root)
    if config is not None:
        yield from look_at_disk(folder_of(config))


def folder_of(config: Config) -> Path:
    """Return the folder that the service writes to, or the nearest one above that exists."""
    store = config.store
    folder = Path(store.run_dir).expanduser().resolve() if is_postgres(store.url) else database_path(store.url).parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


def _open_files(workers: int) -> Finding:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # a service raises what it has to this
    if most == resource.RLIM_INFINITY or most >= _FILES_FOR_ONE * 4:
        return ok(LIMITS, "open files", "no limit" if most == resource.RLIM_INFINITY else f"{most:,} for each process")
    do = "LimitNOFILE=65536 in the unit, `ulimits: nofile` of a container, or `ulimit -n`"
    saw = f"{most:,} for each process: each connection is one"
    return (warning if most >= _FILES_FOR_ONE else problem)(LIMITS, "open files", saw, do)


def _memory(workers: int, root: Path) -> Finding:
    limit, needed = memory_limit(root), workers * WORKER_BYTES
    if limit is None:
        return skipped(LIMITS, "memory", "the system does not say how much there is")
    saw = f"{size(limit)} for {workers} workers, which take about {size(needed)}"
    if limit >= needed:
        return ok(LIMITS, "memory", saw)
    return warning(LIMITS, "memory", saw, "fewer `workers`, or a higher limit (MemoryMax, resources.limits.memory)")


def memory_limit(root: Path = _ROOT) -> int | None:
    """Return the memory of the control group that this process is in, or of the machine; the smallest counts."""
    found = [*_of_groups(root), *_of_machine(root)]
    return min(found, default=None)


def _of_groups(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for place in (line.rpartition("::")[2].lstrip("/") for line in lines if line.startswith("0::")):
        base = root / "sys/fs/cgroup"
        for group in (base / place, *(base / place).parents):
            if group != base and base not in group.parents:
                break
            yield from _numbers(group / "memory.max")
    yield from _numbers(root / "sys/fs/cgroup/memory/memory.limit_in_bytes")


def _numbers(file: Path) -> Iterator[int]:
    try:
        said = file.read_text().strip()
    except OSError:
        return
    if said.isdigit():
        yield int(said)


def _of_machine(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return
    yield from (int(line.split()[1]) * 1_024 for line in lines if line.startswith("MemTotal:"))


def _somaxconn(root: Path) -> Finding:
    for most in _numbers(root / "proc/sys/net/core/somaxconn"):
        if most >= BACKLOG:
            return ok(LIMITS, "connections not yet accepted", f"{BACKLOG:,}")
        saw = f"{most:,}, where a service asks for {BACKLOG:,}: a burst of callers is refused"
        return warning(LIMITS, "connections not yet accepted", saw, f"sysctl net.core.somaxconn={BACKLOG}")
    return skipped(LIMITS, "connections not yet accepted", "the system does not say")


def look_at_disk(folder: Path) -> Iterator[Finding]:
    """Look at what is free where a service writes: bytes, and files that can still be made."""
    room = os.statvfs(folder)
    free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    share = free / total if total else 1.0
    saw = f"{size(free)} of {size(total)} are free at {folder} ({share:.0%})"
    do = "make room or enlarge the disk; docs/runbook.md#waypostdiskfull"
    if share < FULL_SHARE:
        yield problem(LIMITS, "disk", saw, do)
    elif share < LOW_SHARE:
        yield warning(LIMITS, "disk", saw, do)
    else:
        yield ok(LIMITS, "disk", saw)
    if room.f_files and room.f_favail < _FEW_INODES:
        do = "delete small files there: a disk has room for so many files, whatever their size"
        yield problem(LIMITS, "inodes", f"{room.f_favail:,} of {room.f_files:,} are free at {folder}", do)
