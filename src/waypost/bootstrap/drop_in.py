"""The drop-in for the notifications service, put together: a stream, two tables, and FCM."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import uvloop
from msgspec.structs import replace

from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.adapters.jsonlines.sink import JsonLinesSink, standard_error
from waypost.bootstrap.interpreter import share_the_interpreter
from waypost.channels.fcm.plugin import PLUGIN
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import CHANNEL
from waypost.compat.jobs_stream.log import log_in
from waypost.compat.jobs_stream.pool import ConnectionPool
from waypost.compat.jobs_stream.settings import TableSettings
from waypost.compat.jobs_stream.tokens import ANY, TokenLookup, tokens_in
from waypost.compat.jobs_stream.work import LANE, Beside, StreamWork
from waypost.config.drop_in import PROFILE, DropIn, drop_in, variable_of
from waypost.domain.breaker import BreakerRules
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError, Unavailable, WaypostError
from waypost.domain.ids import AppId
from waypost.domain.limits import Rate
from waypost.domain.retry import POLICIES, RetryRules
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.time import SECOND_MS
from waypost.runtime.clock import SystemClock
from waypost.runtime.consumer import Consumer
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.gates import Gates
from waypost.runtime.poison import NoNotes, PoisonWatch
from waypost.runtime.rates import RateGate
from waypost.runtime.settler import Settler
from waypost.runtime.ticker import Ticker
from waypost.stores.redis.jobs import RedisJobs
from waypost.stores.redis.opening import redis_of
from waypost.telemetry import Event, Telemetry

APP: Final = AppId(PROFILE)
IN_FLIGHT: Final = 1_000
HELD_LIMIT: Final = 20_000
LISTEN_TIMEOUT_S: Final = 10.0
"""Seconds that the connection may be silent which waits inside Redis."""
DRAIN_S: Final = 20.0
AWAY_S: Final = 1.0


def serve(environ: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status. What speaks against it is one line of the log, too."""
    log = JsonLinesSink(standard_error(), service=PROFILE)
    try:
        settings = drop_in(environ)
        log = JsonLinesSink(standard_error(), settings.level, service=PROFILE)
        log.event(Event.PROCESS_STARTING, workers=1, pid=os.getpid())
        uvloop.run(_until_told(settings, log))
    except ConfigurationError as wrong:
        named = variable_of(wrong.path)
        log.event(Event.PROCESS_REFUSED, code="configuration", why=str(wrong).replace(wrong.path, named))
        return 1
    except WaypostError as error:
        log.event(Event.PROCESS_REFUSED, code=error.code, why=str(error))
        return 1
    return 0


async def _until_told(settings: DropIn, log: Telemetry) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    share_the_interpreter()
    await consume(settings, log, stop)


async def consume(settings: DropIn, log: Telemetry, stop: asyncio.Event) -> None:
    """Work off the stream until *stop* is set.

    In the service's order: the credential, then what it reads from; Redis is let go of before the database.
    """
    clock = SystemClock()
    sender = FcmSender(CredentialId(APP, CHANNEL), settings.fcm, clock=clock, telemetry=log)
    try:
        await sender.start()
        async with AsyncExitStack() as stack:
            pool = ConnectionPool(settings.tables.url, log)
            stack.push_async_callback(pool.close)
            beside = await _beside(pool, settings.tables, stop)
            if beside is None:
                return
            jobs = await _jobs(settings, stack, log)
            work = StreamWork(jobs, beside, settings.stream, clock, log)
            idle_s = settings.stream.min_idle_ms / SECOND_MS
            tickers: list[Ticker] = [("claim", idle_s, jobs.look_for_silent), ("hold", idle_s / 3, work.say)]
            context = _context(work, beside.tokens, sender, clock, log)
            circuit = context.gates.of(LANE)[sender.credential].circuit
            work.is_away = lambda: not circuit.is_steady
            consumer = Consumer(context, LANE, tickers, lambda: work.rests)
            jobs.on_arrival = consumer.wake
            await jobs.start()
            await consumer.run(stop, jobs.silence, DRAIN_S)
            await jobs.leave()
    finally:
        await sender.stop(0.0)
        log.event(Event.PROCESS_STOPPED)


async def _beside(pool: ConnectionPool, tables: TableSettings, stop: asyncio.Event) -> Beside | None:
    """Inspect the tables as they are; wait for a database that is away, until *stop*."""
    while not stop.is_set():
        try:
            log = await log_in(pool, tables.log_table, tables.log_columns)
            tokens = await tokens_in(pool, tables.token_table, tables.token_columns)
        except Unavailable:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AWAY_S):
                    await stop.wait()
        else:
            return Beside(log, tokens, APP, CHANNEL, PLUGIN.content_check)
    return None


async def _jobs(settings: DropIn, stack: AsyncExitStack, log: Telemetry) -> RedisJobs:
    """Build a consumer of the stream, with the two connections that it needs."""
    redis, listening = redis_of(settings.redis, log), redis_of(replace(settings.redis, timeout_s=LISTEN_TIMEOUT_S), log)
    for each in (redis, listening):
        stack.push_async_callback(each.stop)
        await each.start()
    return RedisJobs(
        redis,
        listening,
        settings.stream.stream,
        settings.stream.group,
        f"waypost-{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}",
        min_idle_ms=settings.stream.min_idle_ms,
        telemetry=log,
    )


def _context(
    work: StreamWork, tokens: TokenLookup, sender: FcmSender, clock: SystemClock, log: Telemetry
) -> DeliveryContext:
    rate = RateGate(sender.credential, Rate(PLUGIN.rate), MemoryLimiter(clock), clock, log, parks=False)
    rates = {sender.credential: rate}
    gates = Gates({sender.credential: sender.capabilities}, {LANE: IN_FLIGHT}, BreakerRules(), log, rates, parks=False)
    return DeliveryContext(
        work=work,
        devices=tokens,
        senders={sender.credential: sender},
        routing=RoutingTable({ANY: CHANNEL}, {APP: {CHANNEL: (sender.credential,)}}, RULES),
        rules={APP: RetryRules(POLICIES["s0_stream"])},
        gates=gates,
        settler=Settler(work, log, HELD_LIMIT, gates.parked),
        poison=PoisonWatch(NoNotes(), 0),
        clock=clock,
        jitter=random.random,
        telemetry=log,
    )
