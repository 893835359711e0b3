"""What every peer in Python does: read the order, warm up, send, and print how long it took and what CPU, as JSON.

The order is a JSON file: ``url`` of the gateway, ``ca_file``, ``count`` and ``in_flight``, credentials, ``tokens`` and
``subscriptions``.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

WARM_UP = 100
TITLE = "Your parcel is here"
Send = Callable[[int], Awaitable[None]]


def body(n: int) -> str:
    """What the n-th notification says."""
    return f"Number {n} was left at the front door."


def order() -> dict[str, Any]:
    """What is asked for."""
    wanted: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    return wanted


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def drive(send: Send, wanted: dict[str, Any], warm_up: int = WARM_UP) -> None:
    """Send the notifications, so many at once."""
    await _run(send, 0, warm_up, wanted["in_flight"])
    before, started = cpu_s(), time.perf_counter()
    await _run(send, warm_up, wanted["count"], wanted["in_flight"])
    print(json.dumps({"seconds": time.perf_counter() - started, "cpu_s": cpu_s() - before}))


async def _run(send: Send, first: int, count: int, in_flight: int) -> None:
    numbers = iter(range(first, first + count))

    async def one_after_another() -> None:
        for n in numbers:
            await send(n)

    await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
