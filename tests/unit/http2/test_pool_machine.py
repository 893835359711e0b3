"""Random life of a pool on a clock that jumps: whatever the server does, every request ends once, and truthfully."""

import asyncio
from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.http2.simulated import Bench, Served, Server, simulate
from waypost.http2 import PoolSettings, Unsent
from waypost.http2.frames import LARGEST_STREAM_ID

ACTIONS = (
    "ask",
    "ask many",
    "ask in haste",
    "go away gracefully",
    "go away",
    "refuse what comes and go away",
    "cut",
    "fall silent",
    "hear again",
    "refuse connections",
    "accept connections",
    "refuse streams",
    "reset streams",
    "answer nothing",
    "be well",
    "no streams",
    "one stream",
    "many streams",
)
MOST_OPEN = 4
QUEUE = 40
POOL = PoolSettings(
    max_connections=2, max_queue=QUEUE, max_age_s=30.0, idle_timeout_s=8.0, ping_after_idle_s=3.0, connect_timeout_s=2.0
)


ON_SERVER: dict[str, dict[str, bool]] = {
    "fall silent": {"hears": False},
    "hear again": {"hears": True},
    "refuse connections": {"accepts": False},
    "accept connections": {"accepts": True},
    "refuse streams": {"refuses": True},
    "refuse what comes and go away": {"refuses": True},
    "reset streams": {"resets": True},
    "answer nothing": {"answers": False},
    "be well": {"hears": True, "accepts": True, "answers": True, "refuses": False, "resets": False},
}
ON_CONNECTIONS: dict[str, Callable[[Served], None]] = {
    "go away gracefully": lambda served: served.go_away(LARGEST_STREAM_ID, 0),
    "go away": lambda served: served.go_away(None, 0),
    "refuse what comes and go away": lambda served: served.go_away(None, 11),
    "cut": lambda served: served.cut(),
    "no streams": lambda served: served.limit(0),
    "one stream": lambda served: served.limit(1),
    "many streams": lambda served: served.limit(100),
}
ASKED: dict[str, tuple[float, ...]] = {"ask": (10.0,), "ask many": (10.0,) * 30, "ask in haste": (0.06,)}
"""How long each request of an action may take, in seconds."""


def act(bench: Bench, action: str) -> None:
    """Let client or server do something."""
    connections = list(bench.server.open)
    for patience_s in ASKED.get(action, ()):
        bench.ask(patience_s)
    for name, value in ON_SERVER.get(action, {}).items():
        setattr(bench.server, name, value)
    if action in ON_CONNECTIONS:
        for served in connections:
            ON_CONNECTIONS[action](served)


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from([0.0, 0.01, 0.03, 0.2, 5.0])), max_size=30))
@settings(max_examples=200)
@example([("ask many", 0.2), ("fall silent", 5.0), ("cut", 5.0), ("hear again", 5.0), ("ask", 0.2)])
def test_every_request_ends_once_whatever_happens(detail: list[tuple[str, float]]) -> None:
    """Answer: done once. Unsent: not done. Unknown: done at most once. Nothing is left, and nothing grew too large."""

    async def life() -> None:
        bench = Bench(Server(streams=10), POOL)
        await bench.pool.start()
        for action, pause_s in detail:
            act(bench, action)
            await asyncio.sleep(pause_s)
            stats = bench.pool.stats
            assert len(bench.server.open) + stats.connecting <= MOST_OPEN
            # What comes back to be sent again was admitted before.
            assert stats.queued <= QUEUE + stats.resent_total
            assert stats.in_flight + stats.queued == bench.asked - len(bench.results) - pending_calls(bench)
            assert len(bench.pool._deadlines._ticks) <= 2 * (QUEUE + bench.asked)
        await bench.end()
        assert bench.pool._deadlines._ticks == {}

    simulate(life())


def pending_calls(bench: Bench) -> int:
    """Requests that were refused at once: their callback comes in the next turn of the loop."""
    stats = bench.pool.stats
    return (
        stats.requests_total
        - stats.answers_total
        - stats.unsent_total
        - stats.unknown_total
        - (stats.in_flight + stats.queued)
    )


@given(st.lists(st.sampled_from(ACTIONS), max_size=10))
@settings(max_examples=50)
def test_a_server_that_is_well_again_is_used_again(detail: list[str]) -> None:
    """After any trouble a request is answered, at the latest after the longest backoff."""

    async def life() -> None:
        bench = Bench(Server(streams=10), POOL)
        await bench.pool.start()
        for action in detail:
            act(bench, action)
            await asyncio.sleep(1.0)
        act(bench, "be well")
        act(bench, "many streams")
        await asyncio.sleep(POOL.backoff_cap_s + POOL.ping_timeout_s + 10.0)
        last = bench.ask()
        await bench.end()
        assert not isinstance(bench.results[last], Unsent)
        assert bench.server.executed[last] == 1

    simulate(life())
