"""A notification from options, as ``send``, ``explain`` and ``forget`` take it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_MESSAGE = (
    click.option("--title", help="The first line."),
    click.option("--subtitle", help="The second line, where a platform has one."),
    click.option("--body", help="The text."),
    click.option("--data", "data", multiple=True, metavar="NAME=VALUE", help="For the app; may be repeated."),
    click.option("--kind", type=click.Choice(["visible", "silent"]), help="Shown, or only waking the app."),
    click.option("--urgency", type=click.Choice(["critical", "high", "normal", "low"]), help="How much it matters."),
    click.option("--link", help="Opened by a tap."),
    click.option("--image", help="URL of a picture."),
    click.option("--badge", type=int, help="The number on the app's icon."),
    click.option("--sound", help="Played on arrival."),
    click.option("--collapse-key", help="A newer one replaces an older one on the device."),
    click.option("--ttl", type=int, metavar="SECONDS", help="How long it is worth sending; 0 is now or never."),
    click.option("--retry-policy", help="A policy by name."),
)
_OPTIONS = (
    click.argument("user_id", required=False),
    *_MESSAGE,
    click.option("--device", "device_ids", multiple=True, metavar="ID", help="Only this device; may be repeated."),
    click.option("--scheduled-at", metavar="TIME", help="Not before, such as 2026-01-31T09:00:00Z."),
    click.option("--idempotency-key", help="The same key is accepted once."),
    click.option("--dedup-window", type=int, metavar="SECONDS", help="The same content is sent once; 0 is always."),
    click.option("--type", help="What sort of message it is, in your own words; decides how long it is said once."),
    click.option("--guarantee", type=click.Choice(["at_least_once", "at_most_once"]), help="What a crash may do."),
    click.option("--from", "file", type=click.File(), help="Take the rest from this JSON file; - is standard input."),
)


def message_options(command: F) -> F:
    """Give *command* the fields of a notification that say nothing of its recipient."""
    for option in reversed(_MESSAGE):
        command = option(command)
    return command


def notification_options(command: F) -> F:
    """Give *command* USER_ID and the fields of a notification."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def composed(fields: dict[str, Any]) -> dict[str, Any]:
    """The notification that *fields* (what the options gave) describe; options win over the file."""
    file: TextIO | None = fields.pop("file")
    notification: dict[str, Any] = read_object(file) if file is not None else {}
    data = dict(pair(text, "--data") for text in fields.pop("data"))
    notification |= {name: value for name, value in fields.items() if value not in (None, ())}
    if data:
        notification["data"] = notification.get("data", {}) | data
    if "user_id" not in notification:
        raise click.UsageError("Say whom to tell: give a USER_ID.")
    return notification


def read_object(file: TextIO) -> dict[str, Any]:
    """The JSON object in *file*."""
    try:
        notification = json.load(file)
    except ValueError:
        raise click.BadParameter("not JSON", param_hint="--from") from None
    if not isinstance(notification, dict):
        raise click.BadParameter("expected one JSON object", param_hint="--from")
    return notification


def pair(text: str, option: str) -> tuple[str, Any]:
    """A name and its value, as *option* takes them."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint=option)
    return name, value
