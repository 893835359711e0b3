"""How long answers are waited for, on a clock that jumps: late ones count."""

import asyncio

from tests.unit.http2.simulated import Bench, Server, simulate
from waypost.http2 import Answer, Lost, PoolSettings, Unknown, Unsent

ONE = PoolSettings(max_connections=1)


def test_a_late_answer_is_an_answer() -> None:
    """The provider takes 15 s: the stream is not reset at the deadline, and nothing is unknown."""

    async def life() -> None:
        bench = Bench(Server(takes_s=15.0), ONE)
        await bench.pool.start()
        bench.ask(10.0, 20.0)
        await asyncio.sleep(12)
        assert bench.pool.stats.in_flight == 1
        await bench.end()
        assert list(bench.results.values()) == [Answer(200, (), b"ok")]

    simulate(life())


def test_what_is_not_answered_in_the_end_is_reset_and_unknown() -> None:
    """Never before it is given up, and at most a tick after."""

    async def life() -> None:
        bench = Bench(Server(answers=False), ONE)
        await bench.pool.start()
        bench.ask(10.0, 20.0)
        await asyncio.sleep(19.9)
        (served,) = bench.server.open
        assert not bench.results and not served.resets
        await asyncio.sleep(0.2)
        assert list(bench.results.values()) == [Unknown("no answer before the deadline", Lost.TIMEOUT)]
        assert served.resets == [1]
        await bench.end()

    simulate(life())


def test_what_is_queued_at_its_deadline_was_not_sent() -> None:
    """However long an answer would have been waited for."""

    async def life() -> None:
        bench = Bench(Server(streams=1, answers=False), ONE)
        await bench.pool.start()
        bench.ask(10.0, 20.0)
        queued = bench.ask(10.0, 20.0)
        await asyncio.sleep(10.1)
        assert bench.results == {queued: Unsent("deadline passed while queued")}
        await bench.end()

    simulate(life())
