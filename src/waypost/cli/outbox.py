"""``waypost outbox``: what is published to topics that others read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client


@click.command(short_help="List what is published to topics that others read.")
@click.option("--status", type=click.Choice(["pending", "claimed", "published"]), help="Only those with this status.")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def outbox(client: Client, as_json: bool, status: str | None, limit: int) -> None:
    """List the outbox, newest first, and how many entries have each status.

    \b
    Examples:
      waypost outbox
      waypost outbox --status pending --json
    """
    answer = client.outbox(status=status, limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            each["notification_id"],
            "all" if each["n"] is None else str(each["n"]),
            each["lane"],
            ", ".join(each["topics"]),
            each["status"],
            short_time(each["added_at"]),
        )
        for each in answer["items"]
    ]
    columns = ("notification", "target", "lane", "topics", "status", "added")
    console().print(table(columns, rows) if rows else "no entries")
    console().print(", ".join(f"{count} {word}" for word, count in answer["counts"].items()))
