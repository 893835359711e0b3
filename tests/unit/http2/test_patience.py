"""How long answers are waited for, on a clock that jumps: late ones count."""

import asyncio

from tests.unit.http2.simulated import Bench, Server, simulate
from waypost.http2 import Answer, ConnectionClosed, Lost, PoolSettings, Unknown, Unsent

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


async def steadily(bench: Bench, count: int, every_s: float = 0.2) -> list[bytes]:
    """Ask *count* times, as the senders do."""
    asked: list[bytes] = []
    for _ in range(count):
        asked.append(bench.ask(10.0, 20.0))
        await asyncio.sleep(every_s)
    return asked


def test_a_connection_that_lives_but_answers_nothing_gets_no_more_requests() -> None:
    """It wedges after 20 requests, PING is answered: what is asked later than a deadline after goes over another."""

    async def life() -> None:
        bench = Bench(Server(), ONE)
        await bench.pool.start()
        before = await steadily(bench, 20)
        (wedged,) = bench.server.open
        wedged.wedged = True
        caught = await steadily(bench, 49)  # 9.8 s
        await asyncio.sleep(1.0)
        after = await steadily(bench, 300)
        assert bench.server.open != [wedged] and bench.pool.stats.ready == 1
        await bench.end()
        assert all(isinstance(bench.results[body], Answer) for body in [*before, *after])
        assert {bench.results[body] for body in caught} == {Unknown("no answer before the deadline", Lost.TIMEOUT)}
        assert bench.server.opened == 2

    simulate(life())


def test_a_late_answer_on_a_connection_in_doubt_still_counts() -> None:
    """The provider stands still for 15 s: nothing is unknown, nothing is done twice, the connection is not reset."""

    async def life() -> None:
        bench = Bench(Server(takes_s=15.0), ONE)
        await bench.pool.start()
        await steadily(bench, 5)
        await asyncio.sleep(10)
        assert bench.pool.stats.connections == 2 and bench.pool.stats.ready == 1
        await bench.end()
        assert all(isinstance(result, Answer) for result in bench.results.values())

    simulate(life())


def test_a_slow_request_among_quick_ones_costs_no_connection() -> None:
    """Every tenth request is never answered; between two of them others are."""

    async def life() -> None:
        bench = Bench(Server(), ONE)
        await bench.pool.start()
        for number in range(200):
            bench.server.answers = number % 10 != 0
            bench.ask(10.0, 20.0)
            await asyncio.sleep(0.2)
        assert bench.server.opened == 1
        await bench.end()

    simulate(life())


def test_where_every_connection_wedges_there_is_always_one_to_ask_and_sockets_stay_bounded() -> None:
    """One that is in doubt is kept while there is no socket for its successor."""

    async def life() -> None:
        bench = Bench(Server(answers=False), PoolSettings(max_connections=2))
        await bench.pool.start()
        for _ in range(600):
            await steadily(bench, 1)
            stats = bench.pool.stats
            assert stats.ready + stats.connecting
            assert stats.connections + stats.connecting <= 4
        bench.server.answers = True
        await asyncio.sleep(21)
        last = await steadily(bench, 10)
        await bench.end()
        assert all(isinstance(bench.results[body], Answer) for body in last)

    simulate(life())


def test_a_provider_that_stood_still_answers_all_that_it_was_asked() -> None:
    """Wholly silent for 15 s, PING included: no new request on that connection, and what it carries is waited for."""

    async def life() -> None:
        bench = Bench(Server(), PoolSettings(max_connections=1, ping_after_silence_s=2.0, ping_timeout_s=2.0))
        await bench.pool.start()
        await steadily(bench, 5)
        (served,) = bench.server.open
        served.stands_still(15.0)
        asked = await steadily(bench, 15)
        await asyncio.sleep(2.5)
        assert bench.pool.stats.ready == 1 and bench.pool.stats.connections == 2
        await bench.end()
        assert all(isinstance(bench.results[body], Answer) for body in asked)
        closed = [event.reason for event in bench.events if isinstance(event, ConnectionClosed)]
        assert "connection lost: PING not answered within 2 s" in closed

    simulate(life())


def test_a_silent_connection_is_cut_when_it_carries_nothing_any_more() -> None:
    """Its requests are unknown when they need not be waited for any longer, not before."""

    async def life() -> None:
        bench = Bench(Server(), ONE)
        await bench.pool.start()
        await steadily(bench, 5)
        (served,) = bench.server.open
        served.silent = True
        caught = await steadily(bench, 1)
        await asyncio.sleep(19.5)
        assert caught[0] not in bench.results and served in bench.server.open
        await asyncio.sleep(1.0)
        assert bench.results[caught[0]] == Unknown("no answer before the deadline", Lost.TIMEOUT)
        assert served not in bench.server.open
        await bench.end()

    simulate(life())


def test_what_goaways_give_back_is_asked_again_while_time_is_left() -> None:
    """Every connection serves ten requests and refuses the rest with its GOAWAY: all 300 are answered, each once."""

    async def life() -> None:
        bench = Bench(Server(streams=1000, serves=10), PoolSettings(max_connections=2))
        await bench.pool.start()
        for _ in range(300):
            bench.ask(10.0, 20.0)
        await bench.end()
        assert all(isinstance(result, Answer) for result in bench.results.values())

    simulate(life())


def test_a_server_that_refuses_for_ever_is_not_asked_without_end() -> None:
    """Streams refused on a connection that lives, and none answered: now and then, until the deadline."""

    async def life() -> None:
        bench = Bench(Server(refuses=True), ONE)
        await bench.pool.start()
        one = bench.ask(10.0, 20.0)
        await bench.end()
        assert bench.results[one] == Unsent("the server reset the stream: REFUSED_STREAM")
        assert 5 < bench.pool.stats.resent_total < 20

    simulate(life())


def test_a_server_that_only_goes_away_is_not_connected_to_without_end() -> None:
    """Connections that answered nothing are made with backoff, which is short while requests wait."""

    async def life() -> None:
        bench = Bench(Server(serves=0), ONE)
        await bench.pool.start()
        one = bench.ask(10.0, 20.0)
        await bench.end()
        assert bench.results[one] == Unsent("the server went away before this request: NO_ERROR")
        assert 5 < bench.server.opened < 20

    simulate(life())


def test_a_server_that_is_back_is_found_within_a_second_while_requests_wait() -> None:
    """It was away for ten minutes, with a request a second: the longest backoff is for when nobody asks."""

    async def life() -> None:
        bench = Bench(Server(accepts=False), PoolSettings())
        await bench.pool.start()
        for _ in range(600):
            bench.ask(3.0)
            await asyncio.sleep(1.0)
        bench.server.accepts = True
        last = bench.ask(3.0)
        await asyncio.sleep(1.5)
        assert isinstance(bench.results[last], Answer)
        await bench.end()

    simulate(life())


def test_a_request_brings_the_next_attempt_to_connect_forward() -> None:
    """Nobody asked for ten minutes: attempts are rare then, and the first request does not wait for the next."""

    async def life() -> None:
        bench = Bench(Server(accepts=False), PoolSettings())
        await bench.pool.start()
        await asyncio.sleep(600)
        assert bench.pool.stats.handshakes_total < 40
        bench.server.accepts = True
        one = bench.ask(3.0)
        await asyncio.sleep(1.5)
        assert isinstance(bench.results[one], Answer)
        await bench.end()

    simulate(life())


def test_while_the_loop_does_not_run_no_deadline_passes_and_no_silence_grows() -> None:
    """Stopped for a minute with answers on their way: all count, and the connection is kept."""

    async def life() -> None:
        bench = Bench(Server(), PoolSettings(max_connections=1, ping_after_silence_s=1.0, ping_timeout_s=1.0))
        await bench.pool.start()
        await steadily(bench, 3)
        for _ in range(2):
            for _ in range(10):
                bench.ask(10.0)
            await asyncio.sleep(0)
            bench.loop.stand_still(60.0)
            await asyncio.sleep(2.0)
        await bench.end()
        assert all(isinstance(result, Answer) for result in bench.results.values())
        assert bench.server.opened == 1

    simulate(life())


def test_a_ping_on_its_way_while_the_loop_does_not_run_is_not_unanswered() -> None:
    """Stopped for a minute right after it was written: its answer is read before the connection is judged."""

    async def life() -> None:
        bench = Bench(Server(), PoolSettings(max_connections=1, ping_after_idle_s=1.0, ping_timeout_s=1.0))
        await bench.pool.start()
        await steadily(bench, 3)
        (served,) = bench.server.open
        served.told.clear()
        await served.told.wait()
        bench.loop.stand_still(60.0)
        await asyncio.sleep(1.0)
        assert bench.server.open == [served] and bench.server.pings
        await bench.end()

    simulate(life())
