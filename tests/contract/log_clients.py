"""Clients of the log's tests, real ones that wait less: connected once, introduced ahead, told sooner.

Introducing a transactional producer to the cluster takes up to half a second, of each of two hundred tests.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, Queue
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from waypost.stores.kafka import consumer, producer, transactions, withdrawals
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames, prepare

_END_S = 0.02
_HURRIED = {"fetch.wait.max.ms": 20, "heartbeat.interval.ms": 200}
_POLL, _CONSUMER, _PRODUCER = "_POLL_S", "Consumer", "Producer"
_AHEAD = 4
_AT_ONCE = 3


class Introduced(Producer):
    """A producer whose transactional id is introduced once, whoever asks for it again."""

    is_introduced = False

    def init_transactions(self, *timeout: float) -> None:
        """See Producer."""
        if not self.is_introduced:
            super().init_transactions(*timeout)
            self.is_introduced = True


class Producers:
    """Stands in for the class of producers: gives those that were introduced while the test before was running.

    Each has an id of its own in place of the one that was asked for; who asks again for that one gets its successor.
    """

    def __init__(self) -> None:
        self._ready: Queue[tuple[str, Introduced]] = Queue(_AHEAD)
        self._ids: dict[str, str] = {}
        self._settings: Mapping[str, Any] = {}
        self._stopping = False
        self._threads = [threading.Thread(target=self._introduce, daemon=True) for _ in range(_AT_ONCE)]

    def __call__(self, settings: Mapping[str, Any]) -> Introduced:
        """A producer with these settings."""
        asked = str(settings["transactional.id"])
        if not self._settings:
            self._settings = settings
            for thread in self._threads:
                thread.start()
        if asked in self._ids or {**settings, "transactional.id": ""} != {**self._settings, "transactional.id": ""}:
            return Introduced({**settings, "transactional.id": self._ids.get(asked, asked)})
        self._ids[asked], producer = self._ready.get()
        return producer

    def stop(self) -> None:
        """Introduce no more."""
        self._stopping = True
        with suppress(Empty):
            while any(each.is_alive() for each in self._threads) or not self._ready.empty():
                self._ready.get(timeout=0.05)

    def _introduce(self) -> None:
        while not self._stopping:
            name = uuid.uuid4().hex
            producer = Introduced({**self._settings, "transactional.id": name})
            with suppress(KafkaException):  # a cluster that just starts: whoever gets it introduces it
                producer.init_transactions(10)
            self._ready.put((name, producer))


def hurried(settings: Mapping[str, Any]) -> Consumer:
    """A consumer that hears sooner of the end of a partition, and of members that come and go."""
    return Consumer({**settings, **_HURRIED})


class LogTopics:
    """The topics of all tests of a process, and clients that are connected once: each test begins where they end."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        prepare(settings, TopicNames(settings))
        self.admin = AdminClient(settings.client())
        self.reader = Consumer(
            {
                **settings.client(),
                "group.id": settings.group,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 5,
                "log_level": 2,
            }
        )
        self._producers = Producers()
        self._hurry = pytest.MonkeyPatch()
        self._hurry.setattr(transactions, _PRODUCER, self._producers)
        for module in (consumer, withdrawals):
            self._hurry.setattr(module, _CONSUMER, hurried)
        for module in (consumer, producer, withdrawals):
            self._hurry.setattr(module, _POLL, _END_S)  # how late a thread notices that it is to end

    def close(self) -> None:
        """Let go of the clients."""
        self._hurry.undo()
        self._producers.stop()
        self.reader.close()
