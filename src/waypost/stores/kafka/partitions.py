"""What the client consumes, in words of ours: partitions, where they begin, and the messages in them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from msgspec import Struct

_POLL_S = 0.1
_COMMITTED_S = 30.0


class PartitionRef(Struct, frozen=True):
    """A partition of a topic."""

    topic: str
    partition: int

    def __hash__(self) -> int:
        return hash(self.topic) ^ self.partition


class Committed(Struct, frozen=True):
    """The offset at which a partition begins for its new owner."""

    place: PartitionRef
    offset: int
    metadata: str | None
    turn: int = 0
    """The number of this member's assignment that brought it: a partition that left and came back has another."""

    def as_partition(self) -> TopicPartition:
        """Convert to what the client takes to begin there."""
        return TopicPartition(self.place.topic, self.place.partition, self.offset)


class IncomingMessage(Struct, frozen=True):
    """A message; without a *value* it is the end of its partition, for now."""

    place: PartitionRef
    offset: int
    value: bytes | None
    key: bytes = b""
    at_ms: int = 0
    """The time when it was written, by its producer or the broker; read where heads are."""
    headers: tuple[tuple[str, bytes], ...] = ()


def beginnings(consumer: Consumer, partitions: list[TopicPartition]) -> list[Committed]:
    """Return where the group of *consumer* goes on in *partitions*; KafkaException where the cluster does not say."""
    return [_begun(each) for each in _committed(consumer, partitions)]


def _committed(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Ask what the group has committed of *partitions*, again while the cluster is not ready to say."""
    ends_s = time.monotonic() + _COMMITTED_S
    while partitions:
        try:
            found = consumer.committed(partitions, _COMMITTED_S)
            failed = next((each.error for each in found if each.error is not None), None)
            if failed is None:
                return found
            raise KafkaException(failed)
        except KafkaException:
            if time.monotonic() > ends_s:
                raise
            time.sleep(_POLL_S)  # nothing tells when the coordinator has loaded the group
    return []


def _begun(committed: TopicPartition) -> Committed:
    """Return where a partition begins; one of which nothing was committed begins with what it still has."""
    return Committed(PartitionRef(committed.topic, committed.partition), max(0, committed.offset), committed.metadata)


def places_of(partitions: Sequence[TopicPartition]) -> list[PartitionRef]:
    """Name the partitions that the client means."""
    return [PartitionRef(each.topic, each.partition) for each in partitions]


def partitions_of(places: Sequence[PartitionRef]) -> list[TopicPartition]:
    """Convert to what the client takes."""
    return [TopicPartition(each.topic, each.partition) for each in places]


def incoming(message: Message, *, heads: bool) -> IncomingMessage | None:
    """Convert a message for the loop; errors pass by themselves (librdkafka goes on trying)."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        return None
    place = PartitionRef(str(message.topic()), message.partition() or 0)
    value = None if error is not None else message.value() or b""
    if not heads or value is None:
        return IncomingMessage(place, message.offset() or 0, value, message.key() or b"")
    read: Any = message.headers()
    headers = tuple((name, text or b"") for name, text in read) if read else ()
    return IncomingMessage(place, message.offset() or 0, value, message.key() or b"", message.timestamp()[1], headers)
