"""The news of settlements for others: dead letters and dead tokens, as JSON, never with a token or content."""

from __future__ import annotations

import msgspec

from waypost.domain.ids import format_id
from waypost.domain.settlement import Change, Dead, Forget
from waypost.domain.time import isoformat
from waypost.ports.ledger import Decided
from waypost.stores.kafka.messages import FORMAT
from waypost.stores.kafka.producer import Outgoing
from waypost.stores.kafka.task_queue import TaskEntry
from waypost.stores.kafka.topics import TopicNames

_encode = msgspec.json.Encoder().encode


def letters(topics: TopicNames, key: bytes, decided: Decided, entry: TaskEntry) -> list[Outgoing]:
    """Build one event for each dead letter, and one for each dead token."""
    events: list[Outgoing] = []
    for change in decided.settled.changes:
        match change.settlement:
            case Dead(code, why, failure_class, letter=True):
                told = _named(decided, change, entry) | {"code": code, "reason": why, "class": failure_class}
                events.append(Outgoing(topics.dead, key, _encode(told)))
            case Forget(code, since, letter):
                told = _named(decided, change, entry) | {"code": code, "since": isoformat(since)}
                events.append(Outgoing(topics.evictions, key, _encode(told)))
                if letter:
                    events.append(Outgoing(topics.dead, key, _encode(told | {"reason": "gone"})))
            case _:
                pass
    return events


def _named(decided: Decided, change: Change, entry: TaskEntry) -> dict[str, object]:
    notification = decided.settled.notification
    devices = {target.n: target.device_id for target in decided.settled.targets or entry.task.targets or ()}
    return {
        "format": FORMAT,
        "notification_id": format_id(notification.id),
        "app": notification.app,
        "kind": notification.kind.value,
        "user_id": notification.user_id,
        "device_id": devices.get(change.n),
        "attempt": change.attempt,
        "at": isoformat(change.at),
    }
