"""``waypost feed``: what a user finds in the app."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, plain, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client
    from waypost.client.types import Json

_FOLDERS: Final = ("inbox", "unread", "archive")


@click.command(short_help="Watch the feed of a user.")
@click.argument("user_id")
@api_options
@as_json_option
def tail(client: Client, user_id: str, as_json: bool) -> None:
    """Print what comes into the feed of USER_ID, and what its user does there, until Ctrl-C.

    \b
    Examples:
      waypost tail alice
      waypost tail alice --json
    """
    for message in client.follow(user_id):
        click.echo(json.dumps(message, ensure_ascii=False) if as_json else _line(message))


def _line(message: Json) -> str:
    """Say a message in one line."""
    counts = f"{message['unread']} unread, {message['unseen']} unseen" if "unread" in message else ""
    match message["type"]:
        case "hello":
            return f"connected: {counts}"
        case "entry":
            entry = message["entry"]
            return f"{short_time(entry['shown_at'])}  {entry['id']}  {plain(entry['title'] or '')}"
        case "marked":
            return f"{message['mark']}: {', '.join(message.get('ids', ())) or 'many'}; {counts}"
        case "fetch":
            return "more came meanwhile than is shown: see waypost feed"
        case kind:
            return plain(str(kind))


@click.command(short_help="List the feed of a user.")
@click.argument("user_id")
@click.option("--folder", type=click.Choice(_FOLDERS), default="inbox", show_default=True, help="The part of the feed.")
@click.option("--type", "kind", help="Only entries of this type.")
@click.option("--tag", help="Only entries with this tag.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="The most entries.")
@api_options
@as_json_option
def feed(
    client: Client, user_id: str, folder: str, kind: str | None, tag: str | None, limit: int, as_json: bool
) -> None:
    """List what was sent to USER_ID by the channel inapp, newest first, with what is new.

    \b
    Examples:
      waypost feed alice
      waypost feed alice --folder unread --type promotion --json
      waypost feed alice --tag orders
    """
    answer = client.feed(user_id, folder=folder, type=kind, tag=tag, limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            each["id"],
            short_time(each["shown_at"]),
            "read" if each["read_at"] else "seen" if each["seen_at"] else "new",
            each["type"],
            None if each["title"] is None else plain(each["title"]),
        )
        for each in answer["items"]
    ]
    columns = ("notification", "shown", "state", "type", "title")
    console().print(table(columns, rows) if rows else f"{plain(user_id)} has nothing there")
    console().print(f"{answer['unread']} unread, {answer['unseen']} unseen")
