"""Twenty-four hours of connection life on a clock that jumps: ages, idleness, rotations, GOAWAYs, silence."""

import asyncio

from tests.unit.http2.simulated import DAY_S, HOUR_S, Bench, Server, simulate
from waypost.channels.apns.gateway import PING_AFTER_IDLE_S
from waypost.channels.fcm.wire import IDLE_S, MAX_AGE_S, STREAMS
from waypost.http2 import Answer, ConnectionClosed, Lost, PoolSettings, Unknown, Unsent

# What the senders set for each provider.
FCM = PoolSettings(max_connections=4, max_streams=STREAMS, idle_timeout_s=IDLE_S, max_age_s=MAX_AGE_S)
APNS = PoolSettings(max_connections=25, ping_after_idle_s=PING_AFTER_IDLE_S)


def google() -> Server:
    """What was observed of FCM: 4 minutes idle, an hour of age, three PINGs without a request."""
    return Server(streams=100, idle_s=240.0, max_age_s=HOUR_S, pings_allowed=3)


def all_answered(bench: Bench) -> bool:
    """Whether nothing went wrong."""
    return all(isinstance(result, Answer) for result in bench.results.values())


def test_a_steady_day_at_fcm_meets_no_goaway() -> None:
    """A request every 20 s: connections are replaced before the hour is over, each once, and no request notices."""

    async def day() -> None:
        bench = Bench(google(), FCM)
        await bench.pool.start()
        for _ in range(int(DAY_S / 20)):
            bench.ask()
            await asyncio.sleep(20)
        await bench.end()
        assert all_answered(bench) and not bench.goaways()
        assert 24 <= bench.server.opened <= 28
        assert bench.server.most_open <= 2

    simulate(day())


def test_a_quiet_day_at_fcm_meets_no_goaway() -> None:
    """A request every 7 minutes: the idle connection is given up before Google does it, and none is pinged to death."""

    async def day() -> None:
        bench = Bench(google(), FCM)
        await bench.pool.start()
        for _ in range(int(DAY_S / 420)):
            await asyncio.sleep(420)
            bench.ask()
        await bench.end()
        assert all_answered(bench) and not bench.goaways()

    simulate(day())


def test_a_quiet_day_at_apns_keeps_one_connection() -> None:
    """A PING an hour, as Apple allows, and nothing else."""

    async def day() -> None:
        bench = Bench(Server(streams=1000), APNS)
        await bench.pool.start()
        await asyncio.sleep(DAY_S)
        bench.ask()
        await bench.end()
        assert all_answered(bench)
        assert bench.server.opened == 1
        assert 22 <= bench.server.pings <= 24

    simulate(day())


def test_a_connection_that_dies_in_the_quiet_is_found_before_it_is_needed() -> None:
    """A gateway forgets the connection without a word: the next PING is not answered, and a new one is open in time."""

    async def day() -> None:
        bench = Bench(Server(streams=1000), APNS)
        await bench.pool.start()
        await asyncio.sleep(60)
        bench.server.hears = False
        await asyncio.sleep(HOUR_S + 10)
        bench.server.hears = True
        await asyncio.sleep(60)
        bench.ask()
        await bench.end()
        assert all_answered(bench)
        closed = [event.reason for event in bench.events if isinstance(event, ConnectionClosed)]
        assert "PING not answered" in closed[0]

    simulate(day())


def test_a_connection_that_fell_silent_unused_is_found_by_the_next_request() -> None:
    """A request that meets silence after a quiet minute is lost when a PING goes unanswered; the next goes on."""

    async def day() -> None:
        bench = Bench(Server(streams=1000), PoolSettings(max_connections=1))
        await bench.pool.start()
        bench.ask()
        await asyncio.sleep(60)
        bench.server.hears = False
        bench.ask()
        await asyncio.sleep(15)
        closed = [event.reason for event in bench.events if isinstance(event, ConnectionClosed)]
        assert len(closed) == 1 and "PING not answered" in closed[0]
        bench.server.hears = True
        await asyncio.sleep(60)
        bench.ask()
        await bench.end()
        kinds = [type(result) for result in bench.results.values()]
        assert kinds == [Answer, Unknown, Answer]

    simulate(day())


def test_deadlines_shorter_than_the_silence_do_not_hide_a_dead_connection() -> None:
    """Each request gives up after 3 s and leaves the connection unused: two of them are enough to give it up."""

    async def day() -> None:
        bench = Bench(Server(streams=1000), PoolSettings(max_connections=1))
        await bench.pool.start()
        await asyncio.sleep(60)
        bench.server.hears = False
        for _ in range(3):
            bench.ask(deadline_s=3.0)
            await asyncio.sleep(4)
        closed = [event.reason for event in bench.events if isinstance(event, ConnectionClosed)]
        assert closed == ["its requests were not answered before their deadlines"]
        bench.server.hears = True
        await asyncio.sleep(60)
        bench.ask()
        await bench.end()
        assert [type(result) for result in bench.results.values()] == [Unknown, Unknown, Unsent, Answer]

    simulate(day())


def test_a_dead_connection_is_found_although_nothing_more_is_sent() -> None:
    """One request that gives up is enough: the next one, an hour later, goes over another connection."""

    async def day() -> None:
        bench = Bench(Server(streams=1000), PoolSettings(max_connections=1))
        await bench.pool.start()
        await asyncio.sleep(60)
        for served in bench.server.open:
            served.silent = True
        bench.ask(deadline_s=3.0)
        await asyncio.sleep(HOUR_S)
        bench.ask(deadline_s=3.0)
        await bench.end()
        assert [type(result) for result in bench.results.values()] == [Unknown, Answer]

    simulate(day())


def test_a_server_that_answers_pings_and_nothing_else_is_tried_over_other_connections() -> None:
    """Of each two requests that give up the second takes its connection with it; with each it is asked once."""

    async def day() -> None:
        bench = Bench(Server(streams=1000, answers=False), PoolSettings(max_connections=1))
        await bench.pool.start()
        for _ in range(10):
            await asyncio.sleep(60)
            bench.ask(deadline_s=3.0)
        await bench.end()
        assert bench.server.opened == 5 and bench.server.most_open == 1
        assert bench.server.pings <= 10

    simulate(day())


def test_a_day_with_peaks_grows_and_shrinks() -> None:
    """An hourly burst takes more connections; a minute later there is the minimum again."""

    async def day() -> None:
        bench = Bench(Server(streams=10), PoolSettings(min_connections=1, max_connections=5))
        await bench.pool.start()
        bench.ask()
        for _ in range(24):
            for _ in range(300):
                bench.ask()
            await asyncio.sleep(2)
            assert len(bench.server.open) == 5
            for _ in range(200):
                bench.ask()
                await asyncio.sleep(1)
            assert len(bench.server.open) == 1
            await asyncio.sleep(HOUR_S - 202)
        await bench.end()
        assert all_answered(bench)
        assert bench.server.most_open == 5

    simulate(day())


def test_a_bad_day_ends_every_request_truthfully() -> None:
    """Each quarter of an hour something else: two GOAWAYs, no streams, a cut, silence, refusals, resets, no answers."""

    async def day() -> None:
        bench = Bench(Server(streams=50), PoolSettings(max_connections=3, max_age_s=HOUR_S, idle_timeout_s=600.0))
        server = bench.server
        await bench.pool.start()
        good: list[bytes] = []
        for quarter in range(int(DAY_S / 900)):
            for second in range(60):
                good += [bench.ask(), bench.ask()] if second < 15 else []
                bench.ask()
                if second == 20:
                    _trouble(server, quarter % 8)
                await asyncio.sleep(0.4 if second % 3 else 2.5)
            server.hears = server.accepts = server.answers = True
            server.refuses = server.resets = False
            for served in server.open:
                served.limit(50)
            await asyncio.sleep(600)
        await bench.end()
        lost = {result.kind for result in bench.results.values() if isinstance(result, Unknown)}
        assert lost == {Lost.CONNECTION_LOST, Lost.RESET, Lost.TIMEOUT}
        assert all(isinstance(bench.results[body], Answer) for body in good)
        assert server.most_open <= 6

    simulate(day())


def _trouble(server: Server, kind: int) -> None:
    for served in list(server.open):
        match kind:
            case 0:
                served.go_away(2**31 - 1, 0)
            case 1:
                served.go_away(None, 0)
            case 2:
                served.limit(0)
            case 3:
                served.cut()
            case 4:
                server.hears = False
            case 5:
                server.refuses = True
            case 6:
                server.resets = True
            case _:
                server.answers = False
    if kind == 3:
        server.accepts = False
