"""What is published to a Kafka that others read."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Consumer

from tests.contract.log import settings_of
from tests.shows import shows
from waypost.bootstrap.stacks import channel_names
from waypost.domain.ids import AppId, UserId, format_id, next_ids
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.broker import DELAYED, ChannelEntry, Entry
from waypost.stores.kafka.broker import KafkaChannelPublisher, KafkaPublisher, opened
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio


@pytest.mark.engines
async def test_others_read_of_kafka_what_was_published_of_a_user_in_its_order(
    kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """A topic for each lane, keyed by app and user."""
    users = [UserId("ann"), UserId("bob")]
    settings = settings_of(kafka_bootstrap, kafka_prefix, "x")
    entries = [Entry(AppId("demo"), user, b"%d" % n) for n in range(20) for user in users]
    async with opened(KafkaPublisher(settings, Silent(), "work")) as topic:
        assert topic._preparing is not None
        await topic._preparing
        await topic.publish(Lane.HIGH, entries)
        await topic.publish(Lane.LOW, entries[:1])
    found = await asyncio.to_thread(_read, kafka_bootstrap, kafka_prefix, len(entries))
    for user in users:
        key = f"demo/{user}".encode()
        assert [value for one, value in found if one == key] == [b"%d" % n for n in range(20)]


def _read(bootstrap: str, prefix: str, count: int, topic: str = "work.high") -> list[tuple[bytes, bytes]]:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{prefix}others", "auto.offset.reset": "earliest"})
    try:
        reader.subscribe([f"{prefix}{topic}"])
        found: list[tuple[bytes, bytes]] = []
        while len(found) < count:
            if (message := reader.poll(1)) is not None and message.error() is None:
                found.append((message.key() or b"", message.value() or b""))
        return found
    finally:
        reader.close()


@shows("S4-12")
@pytest.mark.engines
async def test_others_read_of_kafka_what_was_published_to_a_channel_by_its_notification(
    kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """Requirement S4-12: the key is the notification's id."""
    ids, _ = next_ids(Instant(1_800_000_000_000), 3, bytes(10), 0)
    settings = settings_of(kafka_bootstrap, kafka_prefix, "x")
    entries = [ChannelEntry(each, b"%d" % n) for n in range(5) for each in ids]
    async with opened(KafkaChannelPublisher(settings, Silent(), channel_names())) as topic:
        assert topic._preparing is not None
        await topic._preparing
        await topic.publish("email", entries)
        await topic.publish("push", entries[:1])
        await topic.publish(DELAYED, entries[:2])
    found = await asyncio.to_thread(_read, kafka_bootstrap, kafka_prefix, len(entries), "email_notification")
    for each in ids:
        key = format_id(each).encode()
        assert [value for one, value in found if one == key] == [b"%d" % n for n in range(5)]
    delayed = await asyncio.to_thread(_read, kafka_bootstrap, kafka_prefix, 2, "delayed_notification")
    assert sorted(delayed) == sorted((format_id(each.notification_id).encode(), each.body) for each in entries[:2])
