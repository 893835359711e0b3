"""Which topics could lose work, and what they are called."""

from __future__ import annotations

import pytest

from tests.shows import shows
from waypost.domain.errors import ConfigurationError
from waypost.domain.notification import Lane
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from waypost.stores.kafka.settings import KafkaSettings, TopicKind
from waypost.stores.kafka.topics import KINDS, TopicNames, unsafe

SETTINGS = KafkaSettings(bootstrap="127.0.0.1:9092")
TRIAL = KafkaSettings(bootstrap="127.0.0.1:9092", trial=True)
SAFE = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "cleanup.policy": "delete",
    "retention.ms": str(7 * DAY_MS),
    "retention.bytes": "-1",
}


@pytest.mark.parametrize(
    ("settings", "copies", "changed", "word"),
    [
        (SETTINGS, 3, {}, None),
        (SETTINGS, 1, {}, "1 copies"),
        (SETTINGS, 3, {"min.insync.replicas": "1"}, "acknowledges with 1"),
        (TRIAL, 1, {"min.insync.replicas": "1"}, None),
        (TRIAL, 1, {"unclean.leader.election.enable": "true"}, "unclean"),
        (SETTINGS, 3, {"cleanup.policy": "compact"}, "compacted"),
        (SETTINGS, 3, {"retention.ms": str(7 * DAY_MS - 1)}, "less than the 7 days"),
        (SETTINGS, 3, {"retention.ms": "-1"}, None),
        (SETTINGS, 3, {"retention.bytes": "1000000"}, "retention.bytes"),
    ],
)
def test_what_could_lose_work_is_refused(
    settings: KafkaSettings, copies: int, changed: dict[str, str], word: str | None
) -> None:
    problems = unsafe(settings, "waypost.normal", copies, SAFE | changed)
    assert len(problems) == (word is not None)
    assert word is None or word in problems[0]


@shows("S1-72", "S1-73", "S2-35")
@pytest.mark.parametrize(
    ("wait_ms", "topic"),
    [
        (0, "waypost.retry.10s"),
        (8 * SECOND_MS, "waypost.retry.10s"),
        (10 * SECOND_MS, "waypost.retry.10s"),
        (32 * SECOND_MS, "waypost.retry.1m"),
        (MINUTE_MS, "waypost.retry.1m"),
        (MINUTE_MS + 1, "waypost.retry.10m"),
        (HOUR_MS, "waypost.retry.1h"),
        (DAY_MS, "waypost.retry.1h"),
    ],
)
def test_what_waits_goes_to_the_topic_of_its_wait(wait_ms: int, topic: str) -> None:
    assert TopicNames(SETTINGS).retry(wait_ms) == topic


@shows("S1-135", "S2-19", "S2-36")
def test_topics_may_have_names_of_ones_own() -> None:
    names = {TopicKind("critical"): "notifications.critical", TopicKind("dead"): "delivery.push.dlq"}
    topics = TopicNames(KafkaSettings(bootstrap="127.0.0.1:9092", prefix="x.", names=names))
    assert topics.of(Lane.CRITICAL) == "notifications.critical"
    assert (topics.dead, topics.records) == ("delivery.push.dlq", "x.records")
    assert len(set(topics.all)) == len(KINDS)


@pytest.mark.parametrize("names", [{"nonsense": "x"}, {"critical": "waypost.high"}])
def test_names_that_mean_nothing_or_the_same_are_refused(names: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.names"):
        TopicNames(KafkaSettings(bootstrap="127.0.0.1:9092", names={TopicKind(k): v for k, v in names.items()}))
