"""A worker of the log that starts before its broker can answer."""

from __future__ import annotations

import asyncio

import pytest

from scripts.services.kafka import Kafka
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.kafka.transactions import TRANSACTION_S, Transactions

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]


async def test_an_id_is_introduced_once_the_broker_is_there(kafka_alone: Kafka) -> None:
    """The first question times out; a coordinator that is still loading is asked again, too."""
    transactions = Transactions(KafkaSettings(bootstrap=kafka_alone.url), lambda turns: None)
    await asyncio.to_thread(kafka_alone.kill)
    starting = asyncio.create_task(transactions.start())
    await asyncio.sleep(TRANSACTION_S)  # what is tried is that time passes
    await asyncio.to_thread(kafka_alone.start)
    await starting
    await transactions.stop()
