"""Names that rows of the page of requirements quote are those of the code, or stand here with what they became."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "internals" / "requirements.md"
_WHAT: Final = re.compile(r"^\| (S\d-\d{2,3}) \| (.+?) \| works \|", re.MULTILINE)
_LINK: Final = re.compile(r"\]\([^)]*\)")
_METHOD: Final = re.compile(r"^(?:GET|POST|PUT|PATCH|DELETE) (?=/)")

RENAMED: Final[Mapping[str, str]] = {
    ":id": "/api/tokens/{token:str}",
    "DELETE /api/tokens/:token": "/api/tokens/{token:str}",
    "DELETE /api/notifications/:id": "/api/notifications/{notification_id:str}",
    "GET /api/notifications/:id": "/api/notifications/{notification_id:str}",
    "PATCH /api/notifications/:id/read": "/api/notifications/{notification_id:str}/read",
    "RetryScheduler": "async def promote_due",
    "SET key … NX EX": "class Claim",
    "TokenJanitor": "def registry_news",
    "apns-push-type: alert": "apns-push-type",
    "aps.alert": '"aps"',
    "aps.badge": '"badge"',
    "broadcast_group_id": "notification_key",
    "channelId": "channel_id",
    "click_receipt": "/v1/receipts",
    "delayed_notification": 'DELAYED: Final = "delayed"',
    "idempotency:<notification_id>": "idempotency:",
    "is_active = false": "is_active",
    "is_active = true": "is_active",
    "mutable-content: 1": '"mutable-content": 1',
    "notifications_2025_10": "PARTITION OF",
    "notify.dispatch": "class TaskQueue",
    "sendOne": "messages:send",
    "shuttingDown": "self._stopping",
    "status: pending": 'PENDING = "pending"',
    "sql/001_init.sql": "CREATE SCHEMA",
    "token_eviction_event": "EVICTIONS",
}
"""What the source says instead, where a row keeps the words of its description."""
ABSENT: Final = {"ALLOW FILTERING", "delayed_queue", "payload_hash"}
"""Names that rows quote since there is nothing of the kind."""


def quoted(page: str) -> Iterator[tuple[str, str]]:
    """Each row that works, with a name that it quotes."""
    for id_, what in _WHAT.findall(page):
        yield from ((id_, name) for name in re.findall(r"`([^`]+)`", _LINK.sub("]", what)))


@cache
def source() -> str:
    """All that is in the package, and the files that it is built and set up from."""
    folders = ("src", "proto", "deploy", "sdk/js/src")
    files = [each for folder in folders for each in (ROOT / folder).rglob("*")]
    words = {".py", ".proto", ".yaml", ".service", ".html", ".sql", ".ts"}
    return "\n".join(each.read_text(encoding="utf-8") for each in files if each.suffix in words)


def strange(page: str) -> list[tuple[str, str]]:
    """The names of a page that neither the source nor the lists above know."""
    return [(id_, name) for id_, name in quoted(page) if here(name) not in source() and name not in ABSENT]


def here(name: str) -> str:
    """How the source says it; a route's method stands in another place."""
    return RENAMED.get(name) or _METHOD.sub("", name)


def test_each_name_that_a_row_quotes_is_in_the_source() -> None:
    assert strange(PAGE.read_text(encoding="utf-8")) == []


def test_the_lists_hold_what_rows_quote_and_nothing_else() -> None:
    names = {name for _, name in quoted(PAGE.read_text(encoding="utf-8"))}
    assert RENAMED.keys() - names == set()
    assert ABSENT - names == set()
    assert [name for name in RENAMED if name in source()] == [], "it has its own name again"


@pytest.mark.parametrize("what", ["Endpoint `POST /v1/nothing`", "Column `no_such_column` ([met](x.md): `y`)"])
def test_a_name_that_is_nowhere_is_found(what: str) -> None:
    assert strange(f"| S1-01 | {what} | works | x | y |  |")
