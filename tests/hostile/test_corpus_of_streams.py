"""The hostile corpus through the streams: what is refused is a dead letter, what is kept is kept as it was said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.sources import kafka_source_under_test, redis_source_under_test
from tests.hostile.behind import Behind, behind
from tests.hostile.corpus import cases
from tests.hostile.differences import otherwise
from tests.hostile.judging import judged
from tests.hostile.sources import AsFields, FromStream
from tests.tables import AddRow

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Behind]:
    """What is behind the streams."""
    async with behind(tmp_path) as service:
        yield service


async def through(name: str, door: FromStream, table: AddRow) -> None:
    """Offer the corpus."""
    corpus = cases()
    complaints, sorts = await judged(door, corpus, otherwise(name, corpus))
    table("hostile submissions", door=name, **sorts)
    assert complaints == []


async def test_every_entry_of_a_redis_stream_is_answered_as_it_must_be(
    service: Behind, redis_url: str, table: AddRow
) -> None:
    """As JSON in one field."""
    async with redis_source_under_test(redis_url) as source:
        await through("Redis, payload", FromStream(service, source), table)


async def test_every_job_of_a_redis_stream_is_answered_as_it_must_be(
    service: Behind, redis_url: str, table: AddRow
) -> None:
    """As fields."""
    async with redis_source_under_test(redis_url) as source:
        await through("Redis, fields", AsFields(service, source), table)


async def test_every_message_of_a_topic_is_answered_as_it_must_be(
    service: Behind, kafka_bootstrap: str, kafka_prefix: str, table: AddRow
) -> None:
    """As the value of a message."""
    async with kafka_source_under_test(kafka_bootstrap, kafka_prefix) as source:
        await through("Kafka", FromStream(service, source), table)
