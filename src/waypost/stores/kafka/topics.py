"""The topics of the log: their names, and that they keep what they are given.

    critical … silent            one a lane: accepted notifications, and what replaces a partly settled one
    retry.10s … retry.1h         what waits, by how long: ``due_at`` in the message says until when
    records                      what was settled; the recorder writes the ledger from it and from the lanes
    withdrawals                  ids that are taken back, read whole by every worker
    dead, evictions              for others to read: dead letters and dead tokens, as JSON

Keys are ``app/user``, so everything of one user in one topic is in order. All messages carry a format number.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # its types do not say what it exports
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicMetadata,
)

from waypost.domain.errors import ConfigurationError, Unavailable
from waypost.domain.notification import Lane
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from waypost.stores.kafka.settings import KafkaMember, KafkaSettings, TopicKind

SAFE_COPIES, SAFE_ACKNOWLEDGED = 3, 2
_ASK_S = 15.0
_LOOK_S = 0.05

TIERS: Sequence[tuple[str, int]] = (
    ("retry.10s", 10 * SECOND_MS),
    ("retry.1m", MINUTE_MS),
    ("retry.10m", 10 * MINUTE_MS),
    ("retry.1h", HOUR_MS),
)
"""Retry topics with the longest wait of what is put there; what waits longer goes through the last one again."""

RECORDS, WITHDRAWALS, DEAD, EVICTIONS = "records", "withdrawals", "dead", "evictions"
KINDS = (*(lane.value for lane in Lane), *(name for name, _ in TIERS), RECORDS, WITHDRAWALS, DEAD, EVICTIONS)


class TopicNames:
    """The name of each topic."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._names = names_of(settings, KINDS)
        self.lanes = {self._names[lane]: lane for lane in Lane}
        self.retries = [self._names[name] for name, _ in TIERS]
        self.records = self._names[RECORDS]
        self.withdrawals = self._names[WITHDRAWALS]
        self.dead = self._names[DEAD]
        self.evictions = self._names[EVICTIONS]

    @property
    def all(self) -> Sequence[str]:
        """Every topic."""
        return tuple(self._names.values())

    @property
    def work(self) -> Sequence[str]:
        """The topics that workers consume."""
        return (*self.lanes, *self.retries)

    def of(self, lane: Lane) -> str:
        """Return the topic of a lane."""
        return self._names[lane]

    def retry(self, wait_ms: int) -> str:
        """Return the topic for tasks that wait so long."""
        return next((self._names[name] for name, most in TIERS if wait_ms <= most), self.retries[-1])


def names_of(settings: KafkaSettings, kinds: Sequence[str]) -> dict[str, str]:
    """Return the names of the topics of *kinds*; ConfigurationError where others are named, or one twice."""
    unknown = sorted(set(settings.names) - set(kinds))
    if unknown:
        raise ConfigurationError(f"kafka.names.{unknown[0]}", f"expected one of {', '.join(kinds)}")
    names = {kind: settings.names.get(TopicKind(kind), settings.prefix + kind) for kind in kinds}
    if len(set(names.values())) < len(kinds):
        raise ConfigurationError("kafka.names", "two topics have the same name")
    return names


def prepare(settings: KafkaSettings, topics: TopicNames) -> None:
    """Make the topics that are missing, then check all of them; blocking.

    ConfigurationError where what is there could lose work, Unavailable where the cluster cannot be asked.
    """
    admin = _admin(settings)
    try:
        copies = _provide(admin, settings, topics.all, single=topics.withdrawals)
        kept = _described(admin, topics.all)
    except KafkaException as failed:
        raise unavailable(failed) from failed
    problems = [problem for name in topics.all for problem in unsafe(settings, name, copies[name], kept[name])]
    if problems:
        raise ConfigurationError("kafka", "; ".join(problems))


def provide(settings: KafkaSettings, names: Sequence[str]) -> int:
    """Make the topics that are missing; return the fewest copies that one of them has. Blocking; Unavailable."""
    try:
        return min(_provide(_admin(settings), settings, names).values())
    except KafkaException as failed:
        raise unavailable(failed) from failed


def provide_one(settings: KafkaMember, name: str) -> None:
    """Make a topic with the cluster's defaults, where it is missing. Blocking; Unavailable."""
    admin = _admin(settings)
    try:
        if name not in admin.list_topics(timeout=_ASK_S).topics:
            _create(admin, [NewTopic(name)])
        _visible(admin, [name])
    except KafkaException as failed:
        raise unavailable(failed) from failed


def describe_topic(settings: KafkaMember, name: str) -> str:
    """Describe the cluster and the topic's partitions. Blocking; Unavailable, also where there is no topic."""
    said = cluster(settings)
    found = _admin(settings).list_topics(timeout=_ASK_S).topics.get(name)
    if found is None or not found.partitions:
        raise Unavailable(f"there is no topic {name}")
    return f"{said}, {name}: {len(found.partitions)} partitions"


def _admin(settings: KafkaMember) -> AdminClient:
    return AdminClient({**settings.client(), "socket.timeout.ms": int(_ASK_S * 1_000)})


def _provide(
    admin: AdminClient, settings: KafkaSettings, names: Sequence[str], single: str | None = None
) -> dict[str, int]:
    """Make missing topics, of one partition where it is *single*; return how many copies each has."""
    existing = admin.list_topics(timeout=_ASK_S).topics
    missing = [name for name in names if name not in existing]
    _make(admin, settings, {name: 1 if name == single else settings.partitions for name in missing})
    found = _visible(admin, names)
    return {name: min(len(each.replicas) for each in found[name].partitions.values()) for name in names}


def unsafe(settings: KafkaSettings, name: str, copies: int, kept: Mapping[str, str]) -> list[str]:
    """Explain why work in the topic *name* could be lost."""
    problems = []
    least = int(kept["min.insync.replicas"])
    if not settings.trial and (copies < SAFE_COPIES or least < SAFE_ACKNOWLEDGED):
        problems.append(
            f"topic {name} has {copies} copies and acknowledges with {least}: at least {SAFE_COPIES} and"
            f" {SAFE_ACKNOWLEDGED} are needed (kafka.trial: true accepts that a broken disk loses work)"
        )
    if kept.get("unclean.leader.election.enable") == "true":
        problems.append(f"topic {name} allows unclean leader elections, which lose what was acknowledged")
    if "delete" not in kept["cleanup.policy"]:
        problems.append(f"topic {name} is compacted; cleanup.policy must be delete")
    retention_ms = int(kept["retention.ms"])
    if 0 <= retention_ms < settings.retention_days * DAY_MS:
        problems.append(f"topic {name} keeps {retention_ms} ms, less than the {settings.retention_days} days asked for")
    if int(kept["retention.bytes"]) >= 0:
        problems.append(f"topic {name} drops by size (retention.bytes), however young its messages are")
    return problems


def unavailable(failed: KafkaException) -> Unavailable:
    """Build the error for callers; the broker's own words name nothing secret."""
    error = failed.args[0]
    return Unavailable(f"the log cannot be reached: {error.name() if isinstance(error, KafkaError) else 'unknown'}")


def _visible(admin: AdminClient, names: Sequence[str]) -> Mapping[str, TopicMetadata]:
    """Describe topics as the cluster does; a broker may hear a moment later of one that was just made."""
    ends_s = time.monotonic() + _ASK_S
    while True:
        found = admin.list_topics(timeout=_ASK_S).topics
        if all(name in found and found[name].partitions for name in names):
            return found
        if time.monotonic() > ends_s:
            raise Unavailable("the log's topics were made, and do not appear")
        time.sleep(_LOOK_S)  # brokers hear of topics one after the other, and tell only who asks


def _make(admin: AdminClient, settings: KafkaSettings, missing: Mapping[str, int]) -> None:
    copies = 1 if settings.trial and settings.replication == 1 else settings.replication
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(settings.retention_days * DAY_MS),
        "retention.bytes": "-1",
        "min.insync.replicas": str(max(1, copies - 1)),
    }
    new = [NewTopic(name, partitions, copies, config=config) for name, partitions in missing.items()]
    _create(admin, new)


def _create(admin: AdminClient, new: list[NewTopic]) -> None:
    for making in admin.create_topics(new, operation_timeout=_ASK_S).values() if new else ():
        try:
            making.result()
        except KafkaException as failed:
            if failed.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another process was faster
                raise


def _described(admin: AdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
    return {
        resource.name: {key: entry.value for key, entry in described.result().items()}
        for resource, described in asked.items()
    }


def describe(settings: KafkaSettings) -> str:
    """Prepare the topics, and describe the cluster."""
    topics = TopicNames(settings)
    prepare(settings, topics)
    return f"{cluster(settings)}, {len(topics.all)} topics that begin with {settings.prefix}"


def cluster(settings: KafkaMember) -> str:
    """Count the brokers that answer; Unavailable."""
    try:
        admin = _admin(settings)  # kept in a name: once collected, it would cancel its question
        found = admin.describe_cluster().result(_ASK_S)
    except KafkaException as failed:
        raise unavailable(failed) from failed
    return f"Kafka, {len(found.nodes)} broker{'s' * (len(found.nodes) != 1)}"
