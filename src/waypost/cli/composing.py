"""A notification from options, as ``send``, ``explain`` and ``forget`` take it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click

if TYPE_CHECKING:
    from waypost.client import Submission

F = TypeVar("F", bound=Callable[..., Any])
_Step = str | dict[str, str]


def line_for_dash(_context: click.Context, _option: click.Parameter, said: str | None) -> str | None:
    """Read a line of stdin for `-`: what stands in the arguments, everybody on the machine can see."""
    if said != "-":
        return said
    line = sys.stdin.readline().strip()
    if not line:
        raise click.BadParameter("standard input is empty")
    return line


def _steps(
    _context: click.Context, _option: click.Parameter, said: tuple[str, ...]
) -> tuple[str | dict[str, str], ...]:
    """Read `push`, `push:30s` and `push:opened:30s`; the API says what makes no sense."""
    steps: list[_Step] = []
    for text in said:
        to, *wait = text.split(":")
        match wait:
            case []:
                steps.append(to)
            case [time]:
                steps.append({"to": to, "for": time})
            case [until, time]:
                steps.append({"to": to, "until": until, "for": time})
            case _:
                raise click.BadParameter(f"expected NAME, NAME:TIME or NAME:UNTIL:TIME, got {text!r}")
    return tuple(steps)


_MESSAGE = (
    click.option(
        "--channel",
        "channels",
        multiple=True,
        metavar="NAME[:TIME]",
        callback=_steps,
        help="Send by this channel, such as push, email or sms; may be repeated. With a time, such as push:30s, the "
        "channels after it are sent only where this one did not deliver in that time.",
    ),
    click.option("--title", help="The title."),
    click.option("--subtitle", help="The subtitle, on platforms that have one."),
    click.option("--body", help="The text."),
    click.option("--data", "data", multiple=True, metavar="NAME=VALUE", help="Data for the app; may be repeated."),
    click.option("--kind", type=click.Choice(["visible", "silent"]), help="Visible, or only waking the app."),
    click.option("--urgency", type=click.Choice(["critical", "high", "normal", "low"]), help="The urgency."),
    click.option("--link", help="The URL that a tap opens."),
    click.option("--image", help="The URL of an image."),
    click.option("--badge", type=int, help="The number on the app's icon."),
    click.option("--sound", help="The sound to play."),
    click.option(
        "--collapse-key",
        help="A newer notification replaces an older one with the same key, unsent or shown.",
    ),
    click.option(
        "--ttl", type=int, metavar="SECONDS", help="Seconds for which sending is worthwhile; 0 means one attempt, now."
    ),
    click.option("--retry-policy", help="The name of a retry policy."),
)
_OPTIONS = (
    click.argument("user_id", required=False),
    *_MESSAGE,
    click.option(
        "--device", "device_ids", multiple=True, metavar="ID", help="Send only to this device; may be repeated."
    ),
    click.option(
        "--token",
        callback=line_for_dash,
        help="In place of USER_ID: the token of a device, with --platform; `-` reads a line of stdin.",
    ),
    click.option("--platform", help="The platform of that device: android, ios, web, ios_fcm or web_fcm."),
    click.option("--scheduled-at", metavar="TIME", help="Earliest time of sending, such as 2026-01-31T09:00:00Z."),
    click.option(
        "--send-at",
        metavar="LOCAL",
        help="Earliest time of sending on the user's clock, such as 2026-01-31T09:00, or `best`, or"
        ' "best 09:00-21:00".',
    ),
    click.option("--idempotency-key", help="A repeated key is accepted only once."),
    click.option(
        "--dedup-window",
        type=int,
        metavar="SECONDS",
        help="Send the same content only once in this time; 0 turns this off.",
    ),
    click.option("--type", help="Your own name for the type of message; selects the dedup window."),
    click.option(
        "--guarantee",
        type=click.Choice(["at_least_once", "at_most_once"]),
        help="What a crash may cause: a repeat, or an unknown outcome.",
    ),
    click.option(
        "--from", "file", type=click.File(), help="Read the other fields from this JSON file; - is standard input."
    ),
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


def composed(fields: dict[str, Any]) -> Submission:
    """Build the notification from *fields* (what the options gave); options win over the file."""
    file: TextIO | None = fields.pop("file")
    notification: dict[str, Any] = read_object(file) if file is not None else {}
    token, platform = fields.pop("token"), fields.pop("platform")
    if (token is None) != (platform is None):
        raise click.UsageError("--token and --platform belong together.")
    if token is not None:
        notification["device"] = {"platform": platform, "token": token}
    data = dict(pair(text, "--data") for text in fields.pop("data"))
    notification |= {name: value for name, value in fields.items() if value not in (None, ())}
    if data:
        notification["data"] = notification.get("data", {}) | data
    if not {"user_id", "device", "to"} & notification.keys():
        raise click.UsageError("Say whom to tell: give a USER_ID, or --token with its --platform.")
    return cast("Submission", notification)  # the API says what is wrong with it


def read_object(file: TextIO) -> dict[str, Any]:
    """Read the JSON object in *file*."""
    try:
        notification = json.load(file)
    except ValueError:
        raise click.BadParameter("not JSON", param_hint="--from") from None
    if not isinstance(notification, dict):
        raise click.BadParameter("expected one JSON object", param_hint="--from")
    return notification


def pair(text: str, option: str) -> tuple[str, Any]:
    """Split a name and its value, as *option* takes them."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint=option)
    return name, value
