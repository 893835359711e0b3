"""Three brokers, each topic on all of them: what producers were told is kept, whichever broker dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from scripts.services.kafka import Kafka
from tests.survival import Survived

pytestmark = pytest.mark.timeout(900)
TOPIC = "faults"
MESSAGES = 6_000
PATIENCE_S = 60.0


@pytest.fixture
def topic(kafka_three: Kafka) -> Iterator[str]:
    """An empty topic of one partition with three copies."""
    admin = AdminClient({"bootstrap.servers": kafka_three.url})
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(timeout=PATIENCE_S)
    yield TOPIC
    admin.delete_topics([TOPIC])[TOPIC].result(timeout=PATIENCE_S)


class Sending:
    """An idempotent producer that waits for all copies, and what it was told of each message."""

    def __init__(self, kafka: Kafka) -> None:
        self._producer = Producer(
            {"bootstrap.servers": kafka.url, "enable.idempotence": True, "linger.ms": 1, "message.timeout.ms": 120_000}
        )
        self.kept: list[int] = []
        self.refused: list[KafkaError] = []

    def send(self, numbers: range) -> None:
        """Produce these numbers, hearing of earlier ones meanwhile."""
        for number in numbers:
            self._producer.produce(TOPIC, str(number).encode(), on_delivery=self._told)
            self._producer.poll(0.0005)

    def finish(self) -> None:
        """Wait until every message has been told of."""
        assert self._producer.flush(PATIENCE_S * 2) == 0

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            value = message.value()
            assert value is not None
            self.kept.append(int(value))
        else:
            self.refused.append(error)


@pytest.mark.survives(
    "the leading broker of three killed", on="a producer of Kafka", so="what was acknowledged is there, once"
)
def test_a_broker_killed_while_it_leads_loses_and_repeats_nothing(
    kafka_three: Kafka, topic: str, survived: Survived
) -> None:
    """The producer waits for the next leader and goes on; the broker comes back as a follower."""
    sending = Sending(kafka_three)
    leader = leader_of(kafka_three, topic)
    sending.send(range(MESSAGES // 3))
    kafka_three.kill(leader)
    sending.send(range(MESSAGES // 3, 2 * MESSAGES // 3))
    kafka_three.start(leader)
    sending.send(range(2 * MESSAGES // 3, MESSAGES))
    sending.finish()
    assert sending.refused == []
    found = numbers_in(kafka_three, topic, MESSAGES)
    assert found == Counter(range(MESSAGES))
    survived(**figures(sending, found))


@pytest.mark.survives("all three brokers killed", on="a producer of Kafka", so="what was acknowledged is there, once")
def test_all_brokers_killed_at_once_keep_what_they_acknowledged(
    kafka_three: Kafka, topic: str, survived: Survived
) -> None:
    """What was on its way is sent when they are back, once."""
    sending = Sending(kafka_three)
    sending.send(range(MESSAGES // 2))
    for node in kafka_three.nodes:
        node.kill()
    sending.send(range(MESSAGES // 2, MESSAGES))
    kafka_three.up()
    sending.finish()
    assert sending.refused == []
    found = numbers_in(kafka_three, topic, MESSAGES)
    assert found == Counter(range(MESSAGES))
    survived(**figures(sending, found))


def leader_of(kafka: Kafka, topic: str) -> int:
    """The number of the node that leads the topic's partition."""
    found = AdminClient({"bootstrap.servers": kafka.url}).list_topics(topic, timeout=PATIENCE_S)
    return int(found.topics[topic].partitions[0].leader)


def numbers_in(kafka: Kafka, topic: str, expected: int) -> Counter[int]:
    """What a reader finds from the start to the end, and how often."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.url,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    found: Counter[int] = Counter()
    try:
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{sum(found.values())} of {expected} found"
            if (error := message.error()) is None:
                value = message.value()
                assert value is not None
                found[int(value)] += 1
            elif error.code() == KafkaError._PARTITION_EOF and sum(found.values()) >= expected:
                return found
    finally:
        consumer.close()


def figures(sending: Sending, found: Counter[int]) -> dict[str, int]:
    """What was seen."""
    return {
        "sent": MESSAGES,
        "lost": len(set(sending.kept) - set(found)),
        "twice": sum(found.values()) - len(found),
        "acknowledged": len(sending.kept),
    }
