"""The disk of the only broker is full: intake refuses, and with room and the broker back nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.services.kafka import Kafka
from tests import disk
from tests.journeys.balance import balance, final_stories
from tests.journeys.harness import Kill, running, until
from tests.journeys.load import Load, called
from tests.journeys.test_log_stack import log_stack, moves
from tests.survival import Survived

DISK_MIB = 96


@pytest.fixture
def on_small_disk(tmp_path: Path, kafka: Kafka) -> Iterator[Kafka]:
    """A broker whose messages are on a file system of their own; *kafka*: one can run here."""
    assert kafka.running()
    broker = Kafka(tmp_path / "kafka")
    messages = broker.node(1).folder / "log"
    messages.mkdir(parents=True)
    with disk.small(messages, DISK_MIB):
        broker.up()
        yield broker
        broker.down()


@pytest.mark.survives("the broker's disk full", on="log", so="intake 503 with a clear code, recovery, no loss")
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_a_full_disk_of_the_broker_refuses_new_work_and_loses_none(
    on_small_disk: Kafka, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """A broker that cannot write ends itself; its operator makes room and starts it again."""
    messages = on_small_disk.node(1).folder / "log"
    async with running(tmp_path, workers=2, **await log_stack(on_small_disk.url, "disk.")) as service:
        async with called(service, rng, users=20, width=6) as load:
            await load.grown(60)
            before = time.time()
            await asyncio.to_thread(disk.fill, messages)
            refused = await until(lambda: _refused(load), "intake refuses")
            on_small_disk.node(1).wait_end()
            disk.free(messages)
            await asyncio.to_thread(on_small_disk.start)
            full = Kill(before, time.time())
            await load.grown(60)
        await final_stories(service, load.ledger)
        result = await balance(service, load.ledger, kills=[full, *moves(service)])
        survived(**result.row(), refused_with=refused, refused=sum(load.ledger.refusals.values()))


async def _refused(load: Load) -> str:
    """With which codes callers are refused; one who repeats what was accepted is not."""
    return ", ".join(sorted(load.ledger.refusals.keys() - {"no answer", "in_progress"}))
