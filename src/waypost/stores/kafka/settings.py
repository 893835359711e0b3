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
    """Seconds without a heartbeat after which a worker's partitions are given to the others."""
    answer_s: Annotated[float, Meta(ge=1, le=60)] = 10.0
    """Seconds that the brokers may take to acknowledge a write."""
    options: dict[LibrdkafkaProperty, str] = {}
    """Further librdkafka properties, such as `security.protocol`, `sasl.username` and `sasl.password`."""

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
    """Your own topic names, by content (`critical`, `records`, …); docs/kafka.md lists them."""
    group: str = "waypost"
    """The consumer group of the workers; that of the recorders is called the same and `.recorder`."""
    partitions: Annotated[int, Meta(ge=1, le=1_000)] = 12
    """Partitions of a topic that Waypost creates; an existing topic keeps its own number."""
    replication: Annotated[int, Meta(ge=1, le=32)] = 3
    """Replicas of a topic that Waypost creates."""
    retention_days: Annotated[int, Meta(ge=1)] = 7
    """Days for which topics keep messages: at least twice the longest outage to survive."""
    trial: bool = False
    """Accepts topics with fewer than 3 replicas or fewer than 2 in-sync ones, with which a broken disk loses work."""
    dedup_away: Literal["open", "closed"] = "open"
    """Whether requests without an idempotency key are accepted (`open`) or refused (`closed`) while dedup keys
    cannot be looked up."""
    settle_ms: Annotated[int, Meta(ge=0, le=250)] = 50
    """Milliseconds for which settlements are collected into one transaction."""
    stall_s: Annotated[float, Meta(ge=5, le=600)] = 30.0
    """Seconds without progress in its settlements after which a worker leaves the group until they progress again."""
    answer_s: Annotated[float, Meta(ge=1, le=60)] = 10.0
    """Seconds that a request waits for the brokers' acknowledgement. Then its outcome is unknown and it is refused."""

    @property
    def silence_s(self) -> float:
        """See KafkaMember."""
        return max(self.stall_s, self.session_timeout_s)


class KafkaSourceSettings(KafkaMember, frozen=True, kw_only=True):
    """A topic that other programs write."""

    group: str = "waypost.intake"
    """The consumer group. A new one begins with the oldest message."""
    topic: Annotated[str, Meta(min_length=1, max_length=249)]
    """The topic to read: one notification as JSON in each message."""
    dead_letters: Annotated[str, Meta(min_length=1, max_length=249)] | None = None
    """The topic for messages that are refused for good; created if missing. Default: the topic's name and `.dead`."""

    @property
    def dead_letters_topic(self) -> str:
        """The topic of dead letters, as set, or by default."""
        return self.dead_letters or f"{self.topic}.dead"
