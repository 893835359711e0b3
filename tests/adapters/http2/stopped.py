"""A client in a process of its own, to be stopped: ``python -m tests.adapters.http2.stopped PORT CA_FILE``."""

from __future__ import annotations

import asyncio
import ssl
import sys

import uvloop

from tests.adapters.http2.client import HEAD
from waypost.http2 import Origin, Pool, PoolSettings, Result

REQUESTS = 10
DEADLINE_S = 1.0


async def main(port: int, ca_file: str) -> None:
    """Send requests with a deadline each, and say what they came to, and how many connections it took."""
    loop = asyncio.get_running_loop()
    origin = Origin("127.0.0.1", port, ssl.create_default_context(cafile=ca_file), server_name="localhost")
    settings = PoolSettings(max_connections=1, ping_after_silence_s=0.2, ping_timeout_s=0.3)
    pool = Pool(origin, settings)
    await pool.start()
    ended: list[asyncio.Future[Result]] = [loop.create_future() for _ in range(REQUESTS)]
    for each in ended:
        pool.request(HEAD, b"hello", loop.time() + DEADLINE_S, each.set_result)
    for result in await asyncio.gather(*ended):
        print(type(result).__name__)
    print(pool.stats.opened_total)
    await pool.close()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
