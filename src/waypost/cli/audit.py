"""``waypost audit``: who ordered what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client


@click.command(short_help="List who ordered what.")
@click.option("--act", help="Only entries of this kind, such as key.made or user.erased.")
@click.option("--by", help="Only orders of this caller.")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def audit(client: Client, as_json: bool, act: str | None, by: str | None, limit: int) -> None:
    """List audit entries, newest first.

    \b
    Examples:
      waypost audit
      waypost audit --act user.erased --json
    """
    answer = client.audit(act=act, by=by, limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (short_time(each["at"]), each["act"], each["subject"], each["by"], each["origin"]) for each in answer["items"]
    ]
    console().print(table(("at", "act", "subject", "by", "from"), rows) if rows else "nothing was ordered")
