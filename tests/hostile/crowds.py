"""Crowds of connections, and what a server's process weighs."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

CROWD = Path(__file__).with_name("crowd.py")
LINE_S = 200


class Crowd:
    """A process that holds connections."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self, line: str) -> None:
        """Return when it has said *line*."""
        assert self._process.stdout is not None
        async with asyncio.timeout(LINE_S):
            assert (await self._process.stdout.readline()).decode().strip() == line


@asynccontextmanager
async def crowd(port: int, count: int, said: bytes = b"") -> AsyncIterator[Crowd]:
    """So many connections, each of which said that, until the block ends."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, CROWD, str(port), str(count), said.hex(), stdin=pipe, stdout=pipe
    )
    try:
        yield Crowd(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


def weight_kib() -> int:
    """The memory of this process."""
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])
