"""``waypost campaigns``: one message to many, from its draft to what came of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from waypost.cli.bulk import POLL_S, UNSETTLED
from waypost.cli.composing import read_object
from waypost.cli.connect import api_options
from waypost.cli.lists import media_of, open_list
from waypost.cli.printing import as_json_option, colored, console, print_json, progress, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client

_OVER = frozenset({"done", "cancelled", "paused"})


@click.group(short_help="Draft, forecast, start and follow campaigns.")
def campaigns() -> None:
    """Draft, forecast, approve, start and follow campaigns.

    \b
    Examples:
      waypost campaigns put spring --from spring.json --list people.csv
      waypost campaigns forecast spring
      waypost campaigns start spring --wait
      waypost campaigns results spring
    """


@campaigns.command(short_help="Draft a campaign, or change it.")
@click.argument("name")
@click.option("--from", "file", type=click.File(), required=True, help="The JSON file that says what and to whom.")
@click.option("--list", "listed", type=click.Path(path_type=Path), help="A .csv or .ndjson file of recipients to add.")
@api_options
@as_json_option
def put(client: Client, name: str, file: TextIO, listed: Path | None, as_json: bool) -> None:
    """Draft the campaign NAME, or change it, and add to its list.

    \b
    Examples:
      waypost campaigns put spring --from spring.json
      waypost campaigns put spring --from spring.json --list people.csv
    """
    asked = read_object(file)
    if listed is not None:
        media = media_of(listed, "--list")
        asked["upload"] = True
    made = client.put_campaign(name, asked)
    if listed is not None:
        with open_list(listed, "--list") as recipients:
            made = client.upload_campaign(name, recipients, media)
    print_json(made) if as_json else _print(made)


@campaigns.command()
@click.argument("name")
@click.option("--wait", is_flag=True, help="Show its progress until it ends or pauses.")
@api_options
@as_json_option
def show(client: Client, name: str, wait: bool, as_json: bool) -> None:
    """Show how far the campaign NAME has come.

    \b
    Example:
      waypost campaigns show spring --wait
    """
    shown = _followed(client, name) if wait else client.campaign(name)
    print_json(shown) if as_json else _print(shown)


@campaigns.command("list")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def list_(client: Client, limit: int, as_json: bool) -> None:
    """List campaigns by name.

    \b
    Example:
      waypost campaigns list --limit 10
    """
    answer = client.campaigns(limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (each["name"], each["state"], each["enqueued"], _settled(each), short_time(each["due_at"]))
        for each in answer["items"]
    ]
    columns = ("campaign", "state", "enqueued", "settled", "begins")
    console().print(table(columns, rows) if rows else "no campaigns")


@campaigns.command()
@click.argument("name")
@api_options
@as_json_option
def forecast(client: Client, name: str, as_json: bool) -> None:
    """Say what the campaign NAME would do: nothing is sent.

    \b
    Example:
      waypost campaigns forecast spring
    """
    made = client.campaign(name, "forecast")
    if as_json:
        print_json(made)
        return
    about = "" if made["exact"] else f", estimated from {made['sampled']}"
    console().print(f"{made['recipients']} recipients{about}; {made['left_out']} opted out")
    for fate, n in sorted(made["users"].items()):
        console().print(f"  {n} {fate}")
    rows = [
        (each["channel"], each["send"], each["fallback"], each["held_back"], _listed(each["suppressed"]))
        for each in made["channels"]
    ]
    if rows:
        console().print(table(("channel", "sent", "as fallback", "held back", "not sent"), rows))
    if made["sms_segments"]:
        console().print(f"{made['sms_segments']} SMS segments, price {made['sms_price']}")
    if made["dead_tokens"]:
        console().print(f"{made['dead_tokens']} tokens are likely to be dead")
    console().print(
        f"begins {short_time(made['begins_at'])}, ends {short_time(made['ends_at']) or 'as fast as it can'}"
    )


@campaigns.command()
@click.argument("name")
@api_options
@as_json_option
def results(client: Client, name: str, as_json: bool) -> None:
    """Compare the variants of the campaign NAME; you may look as often as you like.

    \b
    Example:
      waypost campaigns results spring
    """
    found = client.campaign(name, "results")
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["name"],
            each["sent"],
            each["delivered"],
            each["opened"],
            each["actions"],
            each["successes"],
            _percent(each["rate"]),
            f"{_percent(each['lift_from'])} to {_percent(each['lift_to'])}" if each["lift_from"] is not None else None,
            each["verdict"].replace("_", " "),
        )
        for each in found["variants"]
    ]
    columns = ("variant", "sent", "delivered", "opened", "actions", found["metric"], "rate", "lift", "verdict")
    console().print(table(columns, rows))
    if not found["is_split_right"]:
        console().print("the variants were not sent to as many as their weights say: trust none of this")


@campaigns.command()
@click.argument("name")
@click.argument("at", metavar="TIME")
@api_options
@as_json_option
def schedule(client: Client, name: str, at: str, as_json: bool) -> None:
    """Begin the campaign NAME at TIME.

    \b
    Example:
      waypost campaigns schedule spring 2026-12-01T09:00:00+01:00
    """
    ordered = client.order_campaign(name, "schedule", at)
    print_json(ordered) if as_json else _print(ordered)


@campaigns.command()
@click.argument("name")
@click.option("--wait", is_flag=True, help="Show its progress until it ends or pauses.")
@api_options
@as_json_option
def start(client: Client, name: str, wait: bool, as_json: bool) -> None:
    """Begin the campaign NAME now.

    \b
    Example:
      waypost campaigns start spring --wait
    """
    ordered = client.order_campaign(name, "start")
    if wait:
        ordered = _followed(client, name)
    print_json(ordered) if as_json else _print(ordered)


def _order(order: str, meaning: str) -> None:
    """Add the command that gives an order without more to say."""

    @campaigns.command(order, help=f"{meaning}\n\n\b\nExample:\n  waypost campaigns {order} spring")
    @click.argument("name")
    @api_options
    @as_json_option
    def command(client: Client, name: str, as_json: bool) -> None:
        ordered = client.order_campaign(name, order)
        print_json(ordered) if as_json else _print(ordered)


for _name, _meaning in (
    ("approve", "Agree to the draft NAME as it stands."),
    ("pause", "Pause the campaign NAME until it is resumed."),
    ("resume", "Go on with the campaign NAME."),
    ("cancel", "Cancel the campaign NAME: recipients not sent to yet get nothing."),
):
    _order(_name, _meaning)


def _followed(client: Client, name: str) -> dict[str, Any]:
    """Follow a campaign, showing its progress, and return it when it ends or pauses."""
    with progress() as bar:
        task = bar.add_task("sending", total=None)
        while True:
            shown = client.campaign(name)
            everyone = shown["listed"] or (shown["enqueued"] if shown["step"] == shown["steps"] else 0)
            bar.update(task, total=everyone or None, completed=_settled(shown))
            if shown["state"] in _OVER:
                return shown
            time.sleep(POLL_S)  # the API has no call that waits


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{share:.1%}"


def _settled(shown: dict[str, Any]) -> int:
    return sum(n for status, n in shown["counts"].items() if status not in UNSETTLED)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items()))


def _print(shown: dict[str, Any]) -> None:
    steps = f", step {shown['step']} of {shown['steps']}" if shown["step"] else ""
    console().print(f"{shown['name']} {colored(shown['state'])}{steps}: {shown['enqueued']} recipients enqueued")
    if shown["why"]:
        console().print(f"  it paused by itself: {shown['why']}")
    if shown["due_at"] and not shown["step"]:
        console().print(f"  begins {short_time(shown['due_at'])}")
    for status, n in sorted(shown["counts"].items()):
        console().print(f"  {n} {colored(status)}")
    if shown["seconds_left"]:
        console().print(f"  {shown['per_second']:.0f} a second, {shown['seconds_left']} s left")
