"""Requests that are handed over together: framed, told of and given up together, and each by itself all the same."""

import asyncio
from typing import Any

from tests.unit.http2 import peer
from tests.unit.http2.simulated import Bench, Server, simulate
from waypost.http2 import Answer, Lost, PoolSettings, Result, Unknown, Unsent

ONE = PoolSettings(max_connections=1)
Told = list[list[tuple[Any, Result]]]


def ask_all(bench: Bench, count: int, told: Told, deadline_s: float = 10.0, answer_by_s: float = 10.0) -> None:
    """*count* requests, known by their numbers; what is told of them at once is one entry of *told*."""
    now = bench.loop.time()
    requests = [(peer.HEAD, b"together %d" % n, n) for n in range(count)]
    bench.pool.request_all(requests, now + deadline_s, told.append, now + answer_by_s)


def test_answers_that_come_together_are_told_of_together() -> None:
    """In one call where one read brings them, in as many as it takes otherwise; never a request twice."""

    async def life() -> None:
        bench = Bench(Server(streams=3), ONE)
        await bench.pool.start()
        await asyncio.sleep(1)
        told: Told = []
        ask_all(bench, 8, told)
        await bench.end()
        assert sorted([(tag, result) for ended in told for tag, result in ended]) == [
            (n, Answer(200, (), b"ok")) for n in range(8)
        ]
        assert bench.pool.stats.answers_total == 8

    simulate(life())


def test_each_request_of_a_batch_ends_as_it_stands_when_the_deadline_passes() -> None:
    """One was answered; one that is queued was not sent; those in flight are waited for, then given up."""

    async def life() -> None:
        bench = Bench(Server(streams=1, serves=None), ONE)
        await bench.pool.start()
        await asyncio.sleep(1)
        told: Told = []
        ask_all(bench, 3, told, 5.0, 8.0)
        await asyncio.sleep(0.06)
        bench.server.answers = False
        await asyncio.sleep(5)
        assert told == [
            [(0, Answer(200, (), b"ok"))],
            [(2, Unsent("deadline passed while queued"))],
        ]
        await asyncio.sleep(2)
        assert len(told) == 2
        await asyncio.sleep(1.2)
        assert told[2:] == [[(1, Unknown("no answer before the deadline", Lost.TIMEOUT))]]
        await bench.end()

    simulate(life())


def test_a_bug_of_who_is_told_takes_no_other_batch() -> None:
    """The loop hears of it; the next batch of the same read is told of its answers."""

    async def life() -> None:
        bench = Bench(Server(), ONE)
        errors: list[dict[str, Any]] = []
        bench.loop.set_exception_handler(lambda _, context: errors.append(context))
        await bench.pool.start()
        await asyncio.sleep(1)
        told: Told = []

        def buggy(ended: list[tuple[Any, Result]]) -> None:
            raise RuntimeError

        now = bench.loop.time()
        bench.pool.request_all([(peer.HEAD, b"a", 0), (peer.HEAD, b"b", 1)], now + 10, buggy)
        ask_all(bench, 2, told)
        await bench.end()
        assert [tag for ended in told for tag, _ in ended] == [0, 1]
        assert errors

    simulate(life())


def test_the_connections_double_while_they_answer_and_much_waits() -> None:
    """Fifty in seven rounds of answers; no more than what waits has use for."""

    async def life(count: int, wanted: int) -> None:
        bench = Bench(Server(streams=10, takes_s=0.1), PoolSettings(max_connections=50, max_queue=100_000))
        await bench.pool.start()
        await asyncio.sleep(1)
        told: Told = []
        ask_all(bench, count, told, 100.0, 100.0)
        await asyncio.sleep(2.5)
        assert bench.server.most_open == wanted
        await bench.end()
        assert sum(map(len, told)) == count

    simulate(life(6_000, 50))
    simulate(life(25, 2))


def test_a_server_that_has_answered_nothing_gets_no_more_connections() -> None:
    """However much waits."""

    async def life() -> None:
        bench = Bench(Server(streams=10, answers=False), PoolSettings(max_connections=50))
        await bench.pool.start()
        told: Told = []
        ask_all(bench, 1_000, told, 5.0, 5.0)
        await asyncio.sleep(3)
        assert bench.server.opened == 1
        await asyncio.sleep(3)
        assert sum(map(len, told)) == 1_000
        await bench.end()

    simulate(life())
