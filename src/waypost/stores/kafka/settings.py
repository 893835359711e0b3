"""Settings of the log."""

from __future__ import annotations

from typing import Annotated, Literal, NewType

from msgspec import Meta, Struct

TopicKind = NewType("TopicKind", str)
LibrdkafkaProperty = NewType("LibrdkafkaProperty", str)


class KafkaMember(Struct, frozen=True, kw_only=True):
    """A Kafka cluster, and a group of its consumers."""

    bootstrap: str
    """Brokers to connect to first, `host:port`, separated by commas."""
    group: str = "waypost"
    """The consumer group."""
    session_timeout_s: Annotated[float, Meta(ge=6, le=300)] = 10.0
    """Seconds without a heartbeat after which a worker's partitions go to others."""
    answer_s: Annotated[float, Meta(ge=1, le=60)] = 10.0
    """Seconds that a write may take."""
    options: dict[LibrdkafkaProperty, str] = {}
    """Further librdkafka properties, such as `security.protocol` and `sasl.username`."""

    @property
    def heartbeat_s(self) -> float:
        """Seconds between heartbeats, by which a worker also hears of members that come and go."""
        return self.session_timeout_s / 4

    @property
    def silence_s(self) -> float:
        """The longest time that a worker may ask for nothing, and stay."""
        return max(30.0, self.session_timeout_s)

    def client(self) -> dict[str, str | int | float | bool]:
        """Return the options of every client of the cluster."""
        own = {"bootstrap.servers": self.bootstrap, "client.id": "waypost"}
        quiet = {"log_level": 2}  # whatever matters is logged as an event
        return {**own, **quiet, **{str(name): value for name, value in self.options.items()}}


class KafkaSettings(KafkaMember, frozen=True, kw_only=True):
    """A Kafka cluster, and Waypost's topics there: the log, or topics of the outbox for others."""

    prefix: str = "waypost."
    """The prefix of all topic names."""
    names: dict[TopicKind, str] = {}
    """Your own topic names, by kind; docs/kafka.md."""
    group: str = "waypost"
    """The workers' consumer group; that of the recorders ends in `.recorder`."""
    partitions: Annotated[int, Meta(ge=1, le=1_000)] = 12
    """Partitions of topics that Waypost creates."""
    replication: Annotated[int, Meta(ge=1, le=32)] = 3
    """Replicas of topics that Waypost creates."""
    retention_days: Annotated[int, Meta(ge=1)] = 7
    """Days that topics keep messages: at least twice the longest outage to survive."""
    trial: bool = False
    """Accepts fewer than 3 replicas or 2 in-sync ones: a broken disk loses work."""
    dedup_away: Literal["open", "closed"] = "open"
    """Whether requests without an idempotency key are accepted while dedup keys cannot be looked up."""
    settle_ms: Annotated[int, Meta(ge=0, le=250)] = 50
    """Milliseconds for which settlements are collected into one transaction."""
    stall_s: Annotated[float, Meta(ge=5, le=600)] = 30.0
    """Seconds without progress in its settlements after which a worker leaves the group until there is."""
    answer_s: Annotated[float, Meta(ge=1, le=60)] = 10.0
    """Seconds that a request waits for the brokers; then it is refused, its outcome unknown."""

    @property
    def silence_s(self) -> float:
        """See KafkaMember."""
        return max(self.stall_s, self.session_timeout_s)


class KafkaSourceSettings(KafkaMember, frozen=True, kw_only=True):
    """A topic that other programs write."""

    group: str = "waypost.intake"
    """The consumer group; a new one begins with the oldest."""
    topic: Annotated[str, Meta(min_length=1, max_length=249)]
    """One notification as JSON a message."""
    dead_letters: Annotated[str, Meta(min_length=1, max_length=249)] | None = None
    """The topic for what is refused for good; created if missing. Unset: the topic's name and `.dead`."""

    @property
    def dead_letters_topic(self) -> str:
        """The topic of dead letters, as set, or by default."""
        return self.dead_letters or f"{self.topic}.dead"
