"""A load of requests of mixed sizes to one server, each answer judged."""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from waypost.http2 import Answer, Origin, Pool, PoolSettings, Result, Unknown, Unsent, encode_headers

# Nothing, little, a notification, around a frame's size, above a window of 64 KiB for all together.
SIZES = (0, 1, 400, 4096, 16_384, 16_385, 40_000)
IN_FLIGHT = 300
DEADLINE_S = 120.0
HEAD = encode_headers([(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/")])


@dataclass(frozen=True)
class Row:
    """What came of a load; each of *again* was twice provably not taken, and was asked for anew, as a sender does."""

    requests: int
    right: int
    wrong: int
    unknown: int
    again: int
    megabytes: float
    connections: int
    resent: int
    seconds: float


def body_of(number: int) -> bytes:
    """The body of a request, different from its neighbours'."""
    size = SIZES[number % len(SIZES)]
    seed = number.to_bytes(4, "big")
    return (seed * (size // 4 + 1))[:size]


def _verdict(result: Answer | Unknown, expected: bytes) -> str:
    """What became of a request that was written."""
    match result:
        case Answer(status, body=body):
            return "right" if status == 200 and body == expected else "wrong"
        case Unknown():
            return "unknown"
        case _:
            assert_never(result)


async def run(port: int, trust: ssl.SSLContext, requests: int, answer: Callable[[bytes], bytes]) -> Row:
    """Send *requests*, never more than `IN_FLIGHT` at once, over up to two connections."""
    loop = asyncio.get_running_loop()
    pool = Pool(
        Origin("127.0.0.1", port, trust, "localhost"),
        PoolSettings(max_connections=2, max_response_bytes=1 << 17),
    )
    done: asyncio.Future[None] = loop.create_future()
    verdicts: Counter[str] = Counter()
    again: Counter[int] = Counter()
    sent = 0

    def send_next() -> None:
        nonlocal sent
        number = sent
        sent += 1
        send(number)

    def send(number: int) -> None:
        def judge(result: Result) -> None:
            if isinstance(result, Unsent):
                again[number] += 1
                send(number)
                return
            verdicts[_verdict(result, answer(body_of(number)))] += 1
            if sent < requests:
                send_next()
            elif verdicts.total() == requests:
                done.set_result(None)

        pool.request(HEAD, body_of(number), loop.time() + DEADLINE_S, judge)

    started = time.monotonic()
    await pool.start()
    for _ in range(min(IN_FLIGHT, requests)):
        send_next()
    await done
    seconds = time.monotonic() - started
    stats = pool.stats
    await pool.close()
    return Row(
        requests,
        verdicts["right"],
        verdicts["wrong"],
        verdicts["unknown"],
        again.total(),
        sum(SIZES) / len(SIZES) * requests / 1e6,
        stats.opened_total,
        stats.resent_total,
        seconds,
    )
