"""What an operator can choose about the log."""

from __future__ import annotations

from typing import Annotated, Literal, NewType

from msgspec import Meta, Struct

TopicKind = NewType("TopicKind", str)
LibrdkafkaProperty = NewType("LibrdkafkaProperty", str)


class KafkaMember(Struct, frozen=True, kw_only=True):
    """A Kafka cluster, and a group of its consumers."""

    bootstrap: str
    """Brokers to ask first, `host:port`, separated by commas."""
    group: str = "waypost"
    """The consumer group."""
    session_timeout_s: Annotated[float, Meta(ge=6, le=300)] = 10.0
    """After how long without a heartbeat a worker's partitions go to the others."""
    answer_s: Annotated[float, Meta(ge=1, le=60)] = 10.0
    """How long the brokers may take to acknowledge what is written to them."""
    options: dict[LibrdkafkaProperty, str] = {}
    """More properties of librdkafka, such as `security.protocol`, `sasl.username` and `sasl.password`."""

    @property
    def silence_s(self) -> float:
        """How long a worker may ask for nothing, and stay."""
        return max(30.0, self.session_timeout_s)

    def client(self) -> dict[str, str | int | float | bool]:
        """What every client of the cluster is made with."""
        own = {"bootstrap.servers": self.bootstrap, "client.id": "waypost"}
        quiet = {"log_level": 2}  # what matters is an event
        return {**own, **quiet, **{str(name): value for name, value in self.options.items()}}


class KafkaSettings(KafkaMember, frozen=True, kw_only=True):
    """A Kafka cluster, and what Waypost keeps there: the log, or topics of the outbox for others."""

    prefix: str = "waypost."
    """What the names of all topics begin with."""
    names: dict[TopicKind, str] = {}
    """Topics under names of your own, by what they hold (`critical`, `records`, …); docs/kafka.md lists them."""
    group: str = "waypost"
    """The consumer group of the workers; that of the recorders is called the same and `.recorder`."""
    partitions: Annotated[int, Meta(ge=1, le=1_000)] = 12
    """Partitions of a topic that is made; one that exists keeps its own."""
    replication: Annotated[int, Meta(ge=1, le=32)] = 3
    """Copies of a topic that is made."""
    retention_days: Annotated[int, Meta(ge=1)] = 7
    """Days that a topic must keep what was written: at least twice the longest outage to survive."""
    trial: bool = False
    """Accept topics with fewer than 3 copies, or that acknowledge with fewer than 2: a broken disk loses work."""
    dedup_away: Literal["open", "closed"] = "open"
    """While dedup keys cannot be looked up: whether requests without a key of their own are accepted, or refused."""
    settle_ms: Annotated[int, Meta(ge=0, le=250)] = 50
    """How long settlements wait for company before they are written in one transaction."""
    stall_s: Annotated[float, Meta(ge=5, le=600)] = 30.0
    """A worker whose settlements make no progress for so long leaves the group until they do."""
    answer_s: Annotated[float, Meta(ge=1, le=60)] = 10.0
    """How long a request may wait for the brokers' acknowledgement; then its outcome is unknown and it is refused."""

    @property
    def silence_s(self) -> float:
        """See KafkaMember."""
        return max(self.stall_s, self.session_timeout_s)


class KafkaSourceSettings(KafkaMember, frozen=True, kw_only=True):
    """A topic that other programs write."""

    group: str = "waypost.intake"
    """The consumer group that reads it; a new one begins with the oldest message there is."""
    topic: Annotated[str, Meta(min_length=1, max_length=249)]
    """What is read: one notification as JSON in each message."""
    dead_letters: Annotated[str, Meta(min_length=1, max_length=249)] | None = None
    """The topic for what is refused for good, made where it is missing; unset, the topic's name and `.dead`."""

    @property
    def dead_letters_topic(self) -> str:
        """As set, or by default."""
        return self.dead_letters or f"{self.topic}.dead"
