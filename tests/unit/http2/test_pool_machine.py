"""Random life of a pool on a clock that jumps: whatever the server does, every request ends once, and truthfully."""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.http2.simulated import Bench, Server, simulate
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


def act(bench: Bench, action: str) -> None:  # noqa: C901, PLR0912 - one line for each action reads best
    """Let client or server do something."""
    server = bench.server
    connections = list(server.open)
    match action:
        case "ask":
            bench.ask()
        case "ask many":
            for _ in range(30):
                bench.ask()
        case "ask in haste":
            bench.ask(0.06)
        case "fall silent":
            server.hears = False
        case "hear again":
            server.hears = True
        case "refuse connections":
            server.accepts = False
        case "accept connections":
            server.accepts = True
        case "refuse streams":
            server.refuses = True
        case "reset streams":
            server.resets = True
        case "answer nothing":
            server.answers = False
        case "be well":
            server.hears = server.accepts = server.answers = True
            server.refuses = server.resets = False
        case _:
            for served in connections:
                match action:
                    case "go away gracefully":
                        served.go_away(LARGEST_STREAM_ID, 0)
                    case "go away":
                        served.go_away(None, 0)
                    case "refuse what comes and go away":
                        server.refuses = True
                        served.go_away(None, 11)
                    case "cut":
                        served.cut()
                    case "no streams":
                        served.limit(0)
                    case "one stream":
                        served.limit(1)
                    case _:
                        served.limit(100)


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from([0.0, 0.01, 0.03, 0.2, 5.0])), max_size=30))
@settings(max_examples=200)
@example([("ask many", 0.2), ("fall silent", 5.0), ("cut", 5.0), ("hear again", 5.0), ("ask", 0.2)])
def test_every_request_ends_once_whatever_happens(story: list[tuple[str, float]]) -> None:
    """Answer: done once. Unsent: not done. Unknown: done at most once. Nothing is left, and nothing grew too large."""

    async def life() -> None:
        bench = Bench(Server(streams=10), POOL)
        await bench.pool.start()
        for action, pause_s in story:
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
def test_a_server_that_is_well_again_is_used_again(story: list[str]) -> None:
    """After any trouble a request is answered, at the latest after the longest backoff."""

    async def life() -> None:
        bench = Bench(Server(streams=10), POOL)
        await bench.pool.start()
        for action in story:
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
