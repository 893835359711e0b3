"""The other workers, on whatever machine, by LISTEN and NOTIFY; those of this one's supervisor as before.

What is told goes through the database alone, so that it arrives once; what only the supervisor says (a worker died)
comes over its sockets.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from waypost.ports.peers import Answerer, Peers
from waypost.stores.sql.faults import StoreFault
from waypost.stores.sql.postgres.connection import PostgresConnection, Texts, connect, fault_of

CHANNEL = "waypost"
PAYLOAD_LIMIT = 8_000
"""The most bytes of a message; the server takes less than this (PostgreSQL, NOTIFY)."""
_AGAIN_S = 1.0
_NOTIFY = "SELECT pg_notify(?, said) FROM unnest(?) AS said"


class NotifyPeers:
    """The peers that hear of each other by NOTIFY: see Peers."""

    def __init__(self, url: str, local: Peers | None, report: Callable[[StoreFault], None]) -> None:
        self._url = url
        self._local = local
        self._report = report
        self._name = os.urandom(6).hex()
        self._answers: dict[str, list[Answerer]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-notify")
        self._listening: PostgresConnection | None = None
        self._heard: int | None = None
        self._telling: PostgresConnection | None = None
        self._untold: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_telling = False
        self._stopped = False

    async def start(self) -> None:
        """Start listening."""
        self._loop = asyncio.get_running_loop()
        await self._try_to_listen()
        self._task = asyncio.create_task(self._listen_for_ever())

    async def stop(self) -> None:
        """Stop listening."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)
        self._forget()
        if self._telling is not None:
            self._telling.close()

    def on(self, topic: str, answer: Answerer) -> None:
        """See Peers."""
        self._answers.setdefault(topic, []).append(answer)
        if self._local is not None:
            self._local.on(topic, answer)

    def tell(self, topic: str, body: bytes = b"") -> None:
        """See Peers; what is the same and was not sent yet is sent once."""
        payload = f"{self._name} {topic} {base64.b64encode(body).decode()}"
        if len(payload) >= PAYLOAD_LIMIT:  # the server would refuse it and all that is told with it
            raise ValueError(f"{len(payload)} bytes about {topic}: whoever tells divides what is longer than a message")
        self._untold[payload] = None
        if not self._is_telling and not self._stopped:
            self._is_telling = True
            self._thread.submit(self._tell)

    async def ask(self, topic: str, body: bytes, timeout_s: float) -> list[bytes]:
        """See Peers: nothing here asks over machines; withdrawals tell both ways."""
        return [] if self._local is None else await self._local.ask(topic, body, timeout_s)

    def _tell(self) -> None:
        """Send, in the thread, what there is, until nothing is left."""
        while True:
            payloads = list(self._untold)
            if not payloads:
                self._is_telling = False
                if not self._untold:
                    return
                self._is_telling = True
                continue
            for payload in payloads:
                self._untold.pop(payload, None)
            if not self._told(payloads) and not self._told(payloads):  # the first may have been to a server of before
                self._report(StoreFault.LOST)

    def _told(self, payloads: list[str]) -> bool:
        """Send, and tell whether it was sent; a message may be lost, and whoever waits for one looks again."""
        try:
            if self._telling is None or self._telling.raw.closed:
                self._telling = connect(self._url)
            self._telling.execute(_NOTIFY, (CHANNEL, Texts(payloads)))
        except Exception as error:  # noqa: BLE001 - as above
            if self._telling is not None:
                self._telling.close()
            return fault_of(error) is not StoreFault.LOST
        return True

    async def _listen_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_AGAIN_S)
            if self._listening is None:
                await self._try_to_listen()

    async def _try_to_listen(self) -> None:
        with contextlib.suppress(Exception):  # the store says itself that it is away
            connection = await self._loop.run_in_executor(self._thread, self._listen)
            try:
                self._heard = connection.raw.fileno()
                self._loop.add_reader(self._heard, self._hear)
            except Exception:  # it was lost already: the next time listens anew
                self._forget()
                raise

    def _listen(self) -> PostgresConnection:
        connection = connect(self._url)
        connection.execute(f"LISTEN {CHANNEL}")
        self._listening = connection
        return connection

    def _hear(self) -> None:
        connection = self._listening
        if connection is None:
            return
        try:
            connection.raw.pgconn.consume_input()
            while (notified := connection.raw.pgconn.notifies()) is not None:
                self._said(notified.extra.decode())
        except Exception as error:  # noqa: BLE001 - whatever the client raises of a connection that ended
            self._report(fault_of(error))
            self._forget()

    def _said(self, payload: str) -> None:
        name, topic, body = payload.split(" ", 2)
        if name != self._name:
            for answer in self._answers.get(topic, ()):
                answer(base64.b64decode(body))

    def _forget(self) -> None:
        connection, self._listening = self._listening, None
        if connection is not None:
            # By its number, which a connection that was lost no longer says: a reader left behind refuses whatever
            # connection gets that number next.
            if self._heard is not None:
                self._loop.remove_reader(self._heard)
                self._heard = None
            connection.close()
