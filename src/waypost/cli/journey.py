"""How a notification travelled: accepted, routed, each provider's answer, receipts; with times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waypost.cli.printing import colored, console, elapsed_ms, plain, short_time

if TYPE_CHECKING:
    from rich.tree import Tree

    from waypost.client import NotificationView, ReceiptView


def draw(detail: NotificationView) -> None:
    """Print a journey as a tree; times count from the moment it was accepted."""
    console().print(tree(detail), soft_wrap=False)


def tree(detail: NotificationView) -> Tree:
    """Build the tree of a journey."""
    from rich.tree import Tree

    notification, receipts = detail["notification"], detail["receipts"]
    start = notification["created_at"]
    title = detail["content"].get("title") or detail["content"].get("body") or notification["kind"]
    top = Tree(f"[bold]{plain(title)}[/]  {notification['id']}  {colored(notification['status'])}")
    whose = f"for {plain(notification['user_id'])}, by {plain(notification['caller'])}"
    top.add(f"accepted  {short_time(start)}  {whose}, lane {notification['lane']}, round {notification['round']}")
    if notification["scheduled_at"]:
        top.add(f"scheduled for {short_time(notification['scheduled_at'])}")
    if notification["duplicate_of"]:
        top.add(f"said before: see {notification['duplicate_of']}")
    if receipts:
        routed = top.add(f"routed to {_devices(len(receipts))}")
        for receipt in receipts:
            _add_receipt(routed, receipt, start)
        if any(receipt["dead"] for receipt in receipts):
            top.add(f"kept as a dead letter; to send it again: waypost dead replay {notification['id']}")
    if notification["finished_at"]:
        why = f" ({plain(notification['reason'])})" if notification["reason"] else ""
        after = elapsed_ms(start, notification["finished_at"])
        top.add(f"{colored(notification['status'])}{why} after {after}")
    for duplicate in detail["duplicates"]:
        top.add(f"said again: {duplicate}")
    return top


def _add_receipt(routed: Tree, receipt: ReceiptView, start: str) -> None:
    channel = plain(receipt["credential"] or receipt["channel"] or "no channel")
    branch = routed.add(f"[bold]{plain(receipt['device_id'])}[/]  {channel}  {colored(receipt['status'])}")
    for number, attempt in enumerate(receipt["attempts"], start=1):
        by = "" if attempt["credential"] == receipt["channel"] else f"by {attempt['credential']}"
        words = (f"attempt {number}: {colored(attempt['status'])}", by, attempt["code"], attempt["message"])
        said = "  ".join(plain(word) if place else word for place, word in enumerate(words) if word)
        branch.add(f"+{elapsed_ms(start, attempt['at'])}  {said}  token {attempt['token_hash']}")
    if receipt["next_retry_at"]:
        branch.add(f"again at {short_time(receipt['next_retry_at'])}")
    if receipt["parked"]:
        branch.add(f"waits for {plain(receipt['parked'])}")
    if receipt["resolved_at"]:
        known = f", known there as {plain(receipt['provider_id'])}" if receipt["provider_id"] else ""
        why = f" ({plain(receipt['reason'])})" if receipt["reason"] else ""
        after = elapsed_ms(start, receipt["resolved_at"])
        branch.add(f"+{after}  receipt: {colored(receipt['status'])}{why}{known}")


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"
