"""``waypost webhooks``: what was told to a URL, and telling it again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import click

from waypost.cli.composing import line_for_dash
from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json, short_time, table
from waypost.cli.replaying import replay_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from waypost.client import Client


@click.group(short_help="List and replay status changes that URLs were told.")
def webhooks() -> None:
    """List and replay status changes that URLs were told.

    \b
    Examples:
      waypost webhooks list --status failed
      waypost webhooks replay 019c1234-5678-7abc-8def-0123456789ab
      waypost webhooks replay --since 2026-01-31T09:00:00Z --until 2026-01-31T10:00:00Z --sent
    """


def _range_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--until", metavar="TIME", help="What they tell happened before.")(command)
    command = click.option(
        "--since", metavar="TIME", help="What they tell happened then or later, such as 2026-01-31T09:00:00Z."
    )(command)
    return click.option(
        "--receiver",
        metavar="URL",
        callback=line_for_dash,
        help="The URL, in place of the app's status_url; `-` reads a line of stdin.",
    )(command)


def _endpoint_of(receiver: str | None) -> str | None:
    return None if receiver is None else hashlib.sha256(receiver.encode()).hexdigest()


@webhooks.command("list")
@_range_options
@click.option("--status", help="Only with this status, such as sent or failed.")
@click.option("--limit", default=50, show_default=True, help="The most events to show.")
@api_options
@as_json_option
def list_(client: Client, as_json: bool, receiver: str | None, **query: Any) -> None:
    """List what a URL was told, newest first.

    \b
    Examples:
      waypost webhooks list
      waypost webhooks list --status failed --since 2026-01-31T09:00:00Z --json
    """
    answer = client.webhook_events(endpoint=_endpoint_of(receiver), **query)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            each["id"],
            each["status"],
            each["attempts"],
            each["code"],
            short_time(each["at"]),
            short_time(each["finished_at"]),
            each["notification_id"],
            each["told"],
        )
        for each in answer["items"]
    ]
    columns = ("event", "status", "attempts", "code", "at", "finished", "notification", "told")
    console().print(table(columns, rows) if rows else "nothing was told")
    if answer["next"]:
        console().print("there are more: raise --limit")


@webhooks.command(short_help="Tell events again.")
@click.argument("ids", nargs=-1)
@_range_options
@click.option("--sent", is_flag=True, help="Also those that the receiver took.")
@api_options
@as_json_option
def replay(client: Client, ids: tuple[str, ...], as_json: bool, receiver: str | None, sent: bool, **query: Any) -> None:
    """Post the events IDS again, or those of a time.

    \b
    Examples:
      waypost webhooks replay 019c1234-5678-7abc-8def-0123456789ab
      waypost webhooks replay --since 2026-01-31T09:00:00Z --until 2026-01-31T10:00:00Z --sent
    """
    if bool(ids) == (query["since"] is not None):
        raise click.UsageError("Name events, or --since.")
    order = {"ids": ids or None, "endpoint": _endpoint_of(receiver), "sent": sent or None, **query}
    replay_all(lambda cursor: client.replay_webhooks(cursor=cursor, **order), as_json)


@webhooks.command(short_help="List the addresses that webhooks come from.")
@api_options
@as_json_option
def sources(client: Client, as_json: bool) -> None:
    """List the addresses and networks that webhooks come from, as `webhooks.source_addresses` says.

    \b
    Examples:
      waypost webhooks sources
    """
    answer = client.webhook_sources()
    if as_json:
        print_json(answer)
    else:
        console().print("\n".join(answer["addresses"]) or "the settings name none")
