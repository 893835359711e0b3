"""A hiccup of our own is told from the server's: what came meanwhile is read before anything is judged."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.adapters.http2.client import Tls
from tests.adapters.http2.scripted import Served, scripted
from tests.adapters.http2.stopped import DEADLINE_S, REQUESTS
from tests.unit.http2 import peer

BODY = b"x" * 16_000
"""A quarter of an answer: all of them take many reads, between which timers have their turn."""
ROOT = Path(__file__).parents[3]


def test_a_process_that_was_stopped_counts_every_answer(tls: Tls) -> None:
    """SIGSTOP with all requests on the wire, for longer than their deadline; the server answers at once: no Unknown."""
    assert asyncio.run(_talk(tls)) == ["Answer"] * REQUESTS + ["1"]


async def _talk(tls: Tls) -> list[str]:
    clients: list[asyncio.subprocess.Process] = []

    async def answers_the_stopped(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        asked = [await served.request() for _ in range(REQUESTS)]
        (client,) = clients
        client.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(os.waitid, os.P_PID, client.pid, os.WSTOPPED | os.WNOWAIT)
        served.say(*[peer.head(each) for each in asked])
        for each in asked:
            for last in range(4):
                served.say(peer.data(each, BODY, end=last == 3))
        await asyncio.sleep(2 * DEADLINE_S)  # the fault itself: it lasts so long
        client.send_signal(signal.SIGCONT)
        await served.answer_all()

    async with scripted(tls.server("h2"), answers_the_stopped) as port:
        module = "tests.adapters.http2.stopped"
        command = [sys.executable, "-m", module, str(port), str(tls.cert_file)]
        clients.append(await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE))
        said, _ = await clients[0].communicate()
    return said.decode().split()
