"""How a journey is drawn."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from waypost.cli.journey import tree

START = "2026-01-31T09:00:00.000Z"
AT = "2026-01-31T09:00:00.012Z"
TAKEN = {"at": AT, "status": "taken", "code": "200", "message": "", "token_hash": "9f86d081", "credential": "apns"}
AWAY = {**TAKEN, "status": "unreachable", "code": "", "message": "connection refused"}


def receipt(device_id: str, **fields: Any) -> dict[str, Any]:
    """A receipt as the API shows it, sent unless said otherwise."""
    usual = {
        "device_id": device_id,
        "channel": "apns",
        "status": "sent",
        "attempts": [TAKEN],
        "credential": "apns",
        "next_retry_at": None,
        "parked": None,
        "resolved_at": "2026-01-31T09:00:00.020Z",
        "provider_id": "apns-1",
        "reason": None,
        "dead": False,
    }
    return usual | fields


def drawn(status: str, receipts: list[dict[str, Any]], **fields: Any) -> str:
    """The tree of a notification as text."""
    notification: dict[str, Any] = {
        "id": "019c1234-5678-7abc-8def-0123456789ab",
        "status": status,
        "user_id": "alice",
        "caller": "shop",
        "kind": "visible",
        "lane": "high",
        "created_at": START,
        "scheduled_at": None,
        "finished_at": "2026-01-31T09:00:00.020Z",
        "reason": None,
        "duplicate_of": None,
        "round": 1,
    }
    detail: Any = {
        "notification": notification | fields,
        "content": {"title": "[bold]Hi"},
        "receipts": receipts,
        "duplicates": [],
    }
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(tree(detail))
    return captured.get()


def test_it_reads_from_acceptance_to_receipts_with_times() -> None:
    text = drawn("sent", [receipt("phone")])
    steps = ("accepted", "routed to 1 device", "+12 ms  attempt 1: taken", "+20 ms  receipt: sent", "sent after 20 ms")
    places = [text.index(step) for step in steps]
    assert places == sorted(places)


def test_a_title_is_text_and_not_markup() -> None:
    assert "[bold]Hi" in drawn("sent", [])


def test_what_waits_says_for_what() -> None:
    waiting = receipt("phone", status="pending", attempts=[AWAY], resolved_at=None, parked="breaker:demo/apns")
    text = drawn("pending", [waiting], finished_at=None)
    assert "unreachable  connection refused" in text
    assert "waits for breaker:demo/apns" in text
    assert "again at" in drawn("pending", [receipt("phone", next_retry_at=START, resolved_at=None)], finished_at=None)


def test_who_delivered_is_said_where_another_account_stood_in() -> None:
    denied = {**TAKEN, "status": "denied", "code": "20003", "credential": "sms"}
    text = drawn(
        "sent",
        [
            receipt(
                "phone",
                channel="sms",
                credential="sms/backup",
                attempts=[denied, {**TAKEN, "credential": "sms/backup"}],
            )
        ],
    )
    assert "phone  sms/backup  sent" in text
    assert "attempt 1: denied  20003" in text
    assert "attempt 2: taken  by sms/backup" in text


def test_a_failure_says_why_and_how_to_replay_it() -> None:
    failed = receipt("phone", status="failed", reason="BadDeviceToken", dead=True, provider_id=None)
    text = drawn("failed", [failed])
    assert "receipt: failed (BadDeviceToken)" in text
    assert "waypost dead replay 019c1234-5678-7abc-8def-0123456789ab" in text


def test_text_from_outside_neither_colours_nor_commands_the_terminal() -> None:
    detail = drawn("sent", [receipt("[/]\x1b[2J", reason="[red]\x07")])
    assert "[/]\\x1b[2J" in detail
    assert "([red]\\x07)" in detail
    assert "\x1b" not in detail
