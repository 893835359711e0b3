"""Which partitions a reader of the relayed stack pauses, and that all of them go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from waypost.adapters.kafka.broker import READ_AHEAD, KafkaBroker
from waypost.adapters.kafka.consumer import Committed, Incoming, Place
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.domain.notification import Lane
from waypost.telemetry import Silent

OLD, NEW, OTHER = Place("waypost.work.normal", 0), Place("waypost.work.normal", 1), Place("waypost.work.high", 0)


class Paused:
    """A consumer, as far as what is paused of it."""

    is_connected = True

    def __init__(self) -> None:
        self.places: set[Place] = set()

    def pause(self, places: Sequence[Place]) -> None:
        """Receive nothing more of these."""
        self.places |= set(places)

    def resume(self, places: Sequence[Place]) -> None:
        """Receive of these again."""
        self.places -= set(places)

    async def stop(self) -> None:
        """Nothing to let go of."""


@pytest.mark.asyncio
async def test_a_partition_that_comes_while_its_lane_is_paused_waits_and_goes_on_with_the_others() -> None:
    broker: Any = KafkaBroker(KafkaSettings(bootstrap="127.0.0.1:1"), Silent(), "work")
    broker._consumer, broker._is_prepared = paused, _ = Paused(), True
    broker.assigned([Committed(OLD, 0, None)])
    broker.received([Incoming(OLD, n, b"", b"demo/ann") for n in range(READ_AHEAD)])
    assert paused.places == {OLD}
    broker.assigned([Committed(NEW, 0, None), Committed(OTHER, 0, None)])
    assert paused.places == {OLD, NEW}
    await broker.read(Lane.NORMAL, READ_AHEAD // 2 + 1)
    assert paused.places == set()
    await broker.stop()
