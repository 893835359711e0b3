"""The log is searched by the id of a notification: its whole way, under one name, and nothing of others."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.sql import settings_of
from tests.shows import shows
from tests.unit.runtime.bench import APP, LaneBench
from waypost.adapters.jsonlines.sink import JsonLinesSink
from waypost.bootstrap.features import tables
from waypost.domain.backlog import Backlog
from waypost.domain.channel import Channel
from waypost.domain.delivery import Delivery
from waypost.domain.ids import CallerId, UserId, format_id
from waypost.domain.outcome import Outcome, Refused, Taken, Unreachable
from waypost.domain.scope import EVERY_SCOPE
from waypost.domain.submission import Defaults, Submission
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.intake import Caller, Intake
from waypost.pipeline.template_choice import StoredTemplates
from waypost.ports.work import Accepted
from waypost.stores.sql.store import open_store
from waypost.telemetry import Level

LOGS = Path("deploy/logs")
USERS = ("ann", "bob", "cay")
SEARCHED = {"event", "notification_id", "user_id", "app", "credential", "code"}


def answer(delivery: Delivery) -> Outcome:
    """Take the second attempt for Ann, refuse Bob, and take what is for the others."""
    if delivery.device.user_id == "ann" and delivery.attempt == 1:
        return Unreachable("connect", "refused")
    return Refused("BadTopic", "no") if delivery.device.user_id == "bob" else Taken("id")


async def a_run(folder: Path, log: JsonLinesSink) -> dict[str, str]:
    """Send one notification to each of three, through intake and a lane on a real store; their ids."""
    bench = LaneBench(folder / "worker_slots")
    bench.telemetry = log
    settings = settings_of(f"sqlite:///{folder / 'waypost.db'}")
    store = await open_store(settings, clock=bench.clock, peers=None, telemetry=log, tables=tables())
    await store.shards.acquire()
    bench.work, bench.devices = store.work, store.devices  # type: ignore[assignment] # the real ones
    bench.apns.answer = answer
    direct, backlog = DirectDevices(store.devices, {}), Backlog(1_000, is_shared=True)
    defaults = {APP: Defaults()}
    templates = StoredTemplates(store.templates)
    ports = store.work, store.dedup, bench.clock, bench.ids, log, defaults, direct, templates
    intake = Intake(*ports, backlog=lambda: backlog)
    for user in USERS:
        await bench.register(user, Channel("apns"))
    said = [Submission(user_id=UserId(user), title="Hello") for user in USERS]
    results = await intake.submit(Caller(APP, CallerId("shop"), EVERY_SCOPE), said)
    async with bench.running() as loop:
        await bench.settled(loop)
        bench.clock.advance(10_000)
        await store.work.promote_due(bench.clock.now(), 10)
        await bench.settled(loop)
    await store.close()
    accepted = [result for result in results if isinstance(result, Accepted)]
    return {user: format_id(each.id) for user, each in zip(USERS, accepted, strict=True)}


@shows("S4-06")
@pytest.mark.asyncio
async def test_every_line_of_a_notification_is_found_by_its_id(tmp_path: Path) -> None:
    """No line speaks of it without that field: whoever looks for the bare text finds no more than by the field."""
    stream = io.BytesIO()
    log = JsonLinesSink(stream, Level.DEBUG, service="push-worker")
    ids = await a_run(tmp_path, log)
    assert log.flush(60)
    lines = stream.getvalue().decode().splitlines()
    found = {
        user: [each for each in map(json.loads, lines) if each.get("notification_id") == ids[user]] for user in ids
    }
    for user, of_user in found.items():
        assert of_user == [
            json.loads(line) for line in lines if ids[user] in line or ids[user].replace("-", "") in line
        ]
    assert {user: [_told(each) for each in of_user] for user, of_user in found.items()} == {
        "ann": [
            "notification.accepted",
            "notification.processed 0 of 1",
            "delivery.settled 1 again connect",
            "notification.processed 1 of 1",
            "delivery.settled 2 sent",
        ],
        "bob": [
            "notification.accepted",
            "notification.processed 0 of 1",
            "delivery.settled 1 dead BadTopic",
            "delivery.dead BadTopic",
        ],
        "cay": ["notification.accepted", "notification.processed 1 of 1", "delivery.settled 1 sent"],
    }


def _told(line: dict[str, Any]) -> str:
    """Say in short what a line says."""
    if "tokens_count" in line:
        return f"{line['event']} {line['success_count']} of {line['tokens_count']}"
    return " ".join(str(line[name]) for name in ("event", "attempt", "settlement", "code") if name in line)


@shows("S4-06")
def test_shippers_are_told_to_find_lines_by_these_fields() -> None:
    """Both of them, by the same; ids are no labels, of which each value would be a stream of its own."""
    vector = yaml.safe_load((LOGS / "vector.yaml").read_text())["sinks"]["loki"]
    assert vector["structured_metadata"] == {name: f"{{{{ {name} }}}}" for name in SEARCHED}
    assert vector["labels"] == {"job": "waypost", "level": "{{ level }}", "service": "{{ service }}"}
    alloy = (LOGS / "waypost.alloy").read_text()
    assert _names(alloy, "stage.structured_metadata") == SEARCHED
    assert _names(alloy, "stage.labels") == {"level", "service"}
    assert _names(alloy, "stage.json") == SEARCHED | {"timestamp", "level", "service"}
    assert alloy.count("{") == alloy.count("}")


def _names(alloy: str, stage: str) -> set[str]:
    """Find the fields that a stage of Alloy's takes."""
    (block,) = re.findall(re.escape(stage) + r" \{(.*?)\n  \}", alloy, re.DOTALL)
    return set(re.findall(r"(\w+)\s*= \"", block))
