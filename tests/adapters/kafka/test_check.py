"""What ``check-config`` says of a Kafka that the outbox is published to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from waypost.bootstrap.reach import reach
from waypost.bootstrap.registry import load
from waypost.cli import waypost
from waypost.config import Config
from waypost.stores.kafka.promises import INSTEAD

ON_POSTGRES = "store: postgresql://h/d\noutbox: {to: kafka}\n"


def config(folder: Path, text: str) -> Config:
    """What *text* configures."""
    (folder / "waypost.yaml").write_text(f"apps: {{demo: {{}}}}\n{text}")
    return load(folder / "waypost.yaml", {})


@pytest.mark.asyncio
async def test_topics_are_made_and_few_copies_are_told_and_not_refused(
    tmp_path: Path, kafka_bootstrap: str, kafka_prefix: str
) -> None:
    kafka = f"kafka: {{bootstrap: '{kafka_bootstrap}', prefix: {kafka_prefix}, replication: 1, partitions: 1}}\n"
    found = {each.name: each for each in await reach(config(tmp_path, f"{ON_POSTGRES}{kafka}"))}
    assert found["kafka"].problem is None
    assert found["kafka"].what == ("Kafka, 1 broker, 6 topics, 1 copy: what was published is lost with its broker")


@pytest.mark.asyncio
async def test_there_is_a_topic_for_each_family_of_channels(
    tmp_path: Path, kafka_bootstrap: str, kafka_prefix: str
) -> None:
    kafka = f"kafka: {{bootstrap: '{kafka_bootstrap}', prefix: {kafka_prefix}, replication: 1, partitions: 1}}\n"
    by_channel = "store: postgresql://h/d\noutbox: {to: kafka, topics: channels}\n"
    found = {each.name: each for each in await reach(config(tmp_path, f"{by_channel}{kafka}"))}
    assert found["kafka"].what is not None
    assert ", 6 topics, " in found["kafka"].what


def test_what_the_stack_lacks_is_told(tmp_path: Path, kafka_bootstrap: str, kafka_prefix: str) -> None:
    kafka = f"kafka: {{bootstrap: '{kafka_bootstrap}', prefix: {kafka_prefix}, replication: 1, trial: true}}\n"
    config(tmp_path, f"store: sqlite:///{tmp_path}/w.db\nstack: log\n{kafka}")
    command = ["check-config", "--config", str(tmp_path / "waypost.yaml")]
    said = json.loads(CliRunner().invoke(waypost, [*command, "--json"]).output)
    assert said["lacks"] == {str(each): text for each, text in INSTEAD.items()}
    assert "lacks          records_duplicates: " in CliRunner().invoke(waypost, command).output
