"""Groups of 500 messages through our FCM sender, 100 ms from request to answer.

FCM has no batch endpoint any more: a group is 500 requests, multiplexed over few connections.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import uvloop

from benchmarks.deliveries import delivery, notification
from benchmarks.programs import in_rust
from waypost.bench.programs import GatewayProgram, cpu_s, gateway
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.ids import AppId
from waypost.domain.message import message_of
from waypost.domain.outcome import Outcome, Taken
from waypost.lab import credentials
from waypost.runtime.clock import SystemClock
from waypost.telemetry.sink import Silent

GROUP = 500
GROUPS = 200
AT_ONCE = 20
"""What is allowed is 100; more than the connections carry would only wait, and run out of its 10 s."""
LATENCY_MS = 100
WANTED_PER_S = 58
"""Groups: what FCM would take of one project at its largest documented quota is far less (requirement S1-117)."""
CONNECTIONS = 50
"""As many as the setting allows; each carries 100 messages at once, so 10 groups travel and the others wait."""


def run() -> list[Row]:
    """One process sends; the gateway has the other core."""
    with tempfile.TemporaryDirectory(prefix="waypost-bench-") as name:
        folder = Path(name)
        credentials.write_missing(folder, "bench")
        with gateway(in_rust(), folder / credentials.SERVER) as other_side:
            credentials.write_service_account(folder, "bench", f"{other_side.url}/token")
            other_side.set_latency(fcm=LATENCY_MS)
            return uvloop.run(_measure(folder, other_side))


async def _measure(folder: Path, other_side: GatewayProgram) -> list[Row]:
    settings = FcmSettings(
        service_account_file=str(folder / credentials.SERVICE_ACCOUNT),
        endpoint=other_side.url,
        ca_file=str(folder / credentials.CA),
        connections=CONNECTIONS,
    )
    sender = FcmSender(CredentialId.of(AppId(APP), "fcm"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    await _send(sender, AT_ONCE)
    before_s, others_before_s = time.process_time(), cpu_s(other_side.pid)
    started = time.perf_counter()
    await _send(sender, GROUPS)
    groups_per_s = GROUPS / (time.perf_counter() - started)
    messages = GROUPS * GROUP
    own_us, others_us = (
        (time.process_time() - before_s) / messages * 1e6,
        (cpu_s(other_side.pid) - others_before_s) / messages * 1e6,
    )
    await sender.stop(10)
    against = f"the wanted {WANTED_PER_S}"
    return [
        row("groups", f"groups of {GROUP} a second", groups_per_s, "1/s", against, groups_per_s / WANTED_PER_S),
        row("groups", "messages a second", groups_per_s * GROUP, "1/s"),
        row("groups", "the sender's CPU a message", own_us, "µs", f"gateway {others_us:.1f}", own_us / others_us),
    ]


async def _send(sender: FcmSender, groups: int) -> None:
    places = asyncio.Semaphore(AT_ONCE)
    ended: list[asyncio.Future[None]] = []
    for number in range(groups):
        await places.acquire()
        ended.append(_start(sender, _group(number), places))
    await asyncio.gather(*ended)


def _start(sender: FcmSender, group: list[Delivery], places: asyncio.Semaphore) -> asyncio.Future[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(group)

    def report(_: Delivery, outcome: Outcome) -> None:
        nonlocal left
        left -= 1
        if done.done():
            return
        if not isinstance(outcome, Taken):
            done.set_exception(RuntimeError(f"FCM's stand-in did not take a message: {outcome}"))
        elif not left:
            done.set_result(None)

    done.add_done_callback(lambda _: places.release())

    sender.send(group, report)
    return done


def _group(number: int) -> list[Delivery]:
    """One notification to 500 devices: what a campaign sends."""
    one = notification(number)
    said = message_of(one)
    tokens = (f"{number:022d}:APA91b{n:0134d}" for n in range(GROUP))
    return [delivery(one, n, "fcm", "android", token, message=said) for n, token in enumerate(tokens)]
