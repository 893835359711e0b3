"""Every error is logged with its context (requirements S3-102): whom it hit, by ids, and what went wrong, by a code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.shows import shows
from waypost.telemetry import Event, Level

SOURCE: Final = Path("src/waypost")
CONTEXT: Final[dict[Event, set[str]]] = {
    Event.PROCESS_REFUSED: {"code", "why"},
    Event.WORKER_DIED: {"slot", "pid", "status"},
    Event.WORKER_FROZEN: {"slot", "pid"},
    Event.NOTIFICATION_POISON: {"notification_id", "app", "code"},
    Event.OUTCOMES_HELD: {"code", "count"},
    Event.MESSAGE_UNREADABLE: {"topic", "partition", "offset"},
    Event.MESSAGE_NEWER: {"topic", "partition", "offset"},
    Event.SOURCE_AWAY: {"source", "code", "why"},
    Event.STORE_FULL: {"code"},
    Event.STORE_AWAY: {"code"},
    Event.STORE_BROKEN: {"code"},
    Event.CREDENTIAL_DENIED: {"credential", "code"},
    Event.CREDENTIAL_REFUSED: {"credential", "why"},
    Event.WEBHOOK_DISABLED: {"app", "url"},
    Event.REGISTRY_AWAY: {"why"},
    Event.TOKENS_SUSPECT: {"credential", "percent", "answers"},
    Event.BULK_FAILED: {"app", "job", "error"},
    Event.ERASURE_FAILED: {"app", "erasure", "error"},
    Event.REDIS_AWAY: {"why"},
    Event.KAFKA_AWAY: {"why"},
    Event.NOTIFICATIONS_MAX_RETRIES: {"job_id", "user_id", "deliveries"},
    Event.NOTIFICATIONS_FCM_FATAL: {"job_id", "credential", "code"},
    Event.NOTIFICATIONS_UNREADABLE: {"job_id", "why"},
    Event.NOTIFICATIONS_TRIMMED: {"entries"},
    Event.TOKEN_KEYS_AWAY: {"issuer", "why"},
    Event.REQUEST_FAILED: {"route", "error", "place"},
    Event.STAGE_FAILED: {"stage", "error"},
    Event.ALERT_RAISED: {"app", "notification_id", "type", "reason"},
    Event.CAMPAIGN_STOPPED: {"app", "campaign", "why"},
    Event.ARCHIVE_AWAY: {"code", "why"},
    Event.ARCHIVE_DAMAGED: {"path", "fault", "why"},
    Event.BALANCE_OFF: {"app", "lane", "line", "difference"},
}
"""The fields that each line of an error has, wherever in the code it is said."""
CHOSEN: Final[dict[tuple[str, str], tuple[Event, ...]]] = {
    ("stores/sql/group_commit.py", "EVENT_OF[state]"): (Event.STORE_FULL, Event.STORE_AWAY, Event.STORE_BROKEN),
    ("channels/apns/environments.py", "event"): (Event.TOKENS_SUSPECT,),
    ("entrypoints/streams/stream_intake.py", "began"): (Event.SOURCE_AWAY,),
    ("entrypoints/streams/stream_intake.py", "ended"): (Event.SOURCE_BACK,),
    ("stores/kafka/recording.py", "event"): (Event.MESSAGE_NEWER, Event.MESSAGE_UNREADABLE),
}
"""The events that were chosen before they are said, by file and expression."""
ROW: Final = r"^\| (`[^|]*) \| error[^|]* \| (.+) \|$"
"""A row of the page: an error, maybe with others and with what says that it is over."""
PASSED_ON: Final = {"telemetry/combined.py"}
WORDED_OTHERWISE: Final = {("compat/jobs_stream/pool.py", Event.STORE_AWAY): {"why"}}


@cache
def _said() -> tuple[tuple[str, tuple[Event, ...], set[str]], ...]:
    """List every call that logs an event: its place, which events it may be, and its fields."""
    return tuple(_calls())


def _calls() -> Iterator[tuple[str, tuple[Event, ...], set[str]]]:
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        if file in PASSED_ON:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions:
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "event":
                    yield f"{file}:{call.lineno}", _events(call.args[0], file), _fields(call, function)


def _events(argument: ast.expr, file: str) -> tuple[Event, ...]:
    named = [
        Event[node.attr]
        for node in ast.walk(argument)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Event"
    ]
    return tuple(named) or CHOSEN.get((file, ast.unparse(argument)), ())


def _fields(call: ast.Call, function: ast.AST) -> set[str]:
    """Return the names of the fields; of ``**named`` those that a dict of that name is made of in the function."""
    fields = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    spread = {
        keyword.value.id for keyword in call.keywords if keyword.arg is None and isinstance(keyword.value, ast.Name)
    }
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        if isinstance(node, ast.Assign) and names & spread:
            keys = [key for each in ast.walk(node.value) if isinstance(each, ast.Dict) for key in each.keys]
            fields |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    return fields


def test_the_table_has_every_error() -> None:
    assert set(CONTEXT) == {event for event in Event if event.level is Level.ERROR}


@shows("S3-102")
def test_each_error_is_logged_with_its_context_wherever_it_is_said() -> None:
    said: set[Event] = set()
    without: list[str] = []
    for place, events, fields in _said():
        for event in set(events) & set(CONTEXT):
            said.add(event)
            needed = WORDED_OTHERWISE.get((place.rpartition(":")[0], event), CONTEXT[event])
            without += [f"{place}: {event.label} lacks {field}" for field in sorted(needed - fields)]
    assert without == []
    assert said == set(CONTEXT)


@pytest.mark.parametrize("event", CONTEXT, ids=lambda event: event.label)
def test_the_page_of_events_names_each_field(event: Event) -> None:
    """docs/telemetry.md: who reads a line finds there what its fields are."""
    page = Path("docs/telemetry.md").read_text(encoding="utf-8")
    (row,) = [text for names, text in re.findall(ROW, page, re.MULTILINE) if f"`{event.label}`" in names.split(", ")]
    assert {field for field in CONTEXT[event] if f"`{field}`" not in row} == set()


def test_a_chosen_event_that_nobody_declared_is_found() -> None:
    """An event in a variable would otherwise pass unseen."""
    assert [place for place, events, _ in _said() if not events] == []


def test_a_field_that_is_missing_is_found() -> None:
    """A check that finds nothing would prove nothing."""
    function = ast.parse("def f():\n    named = {'app': 1}\n    telemetry.event(Event.BULK_FAILED, **named, error=2)")
    (call,) = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    assert CONTEXT[Event.BULK_FAILED] - _fields(call, function) == {"job"}
