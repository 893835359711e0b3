"""``waypost show``: one notification with everything that happened to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, print_json

if TYPE_CHECKING:
    from waypost.client import Client


@click.command(short_help="Show the journey of a notification.")
@click.argument("notification_id")
@api_options
@as_json_option
def show(client: Client, notification_id: str, as_json: bool) -> None:
    """Draw the journey of NOTIFICATION_ID: accepted, routed, attempts, receipts, with times.

    \b
    Examples:
      waypost show 019c1234-5678-7abc-8def-0123456789ab
      waypost show 019c1234-5678-7abc-8def-0123456789ab --json
    """
    from waypost.cli.journey import draw

    detail = client.show(notification_id)
    if as_json:
        print_json(detail)
    else:
        draw(detail)
