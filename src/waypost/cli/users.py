"""``waypost users``: what there is of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json

if TYPE_CHECKING:
    from waypost.client import Client


@click.group(short_help="Forget a user.")
def users() -> None:
    """Manage users.

    \b
    Examples:
      waypost users erase alice
    """


@users.command(short_help="Forget a user.")
@click.argument("user_id")
@api_options
@as_json_option
def erase(client: Client, user_id: str, as_json: bool) -> None:
    """Withdraw what is open for USER_ID, delete devices and content, and take the user out of what stays.

    It is carried out in the background, a minute at least; the event user.erased tells of its end.

    \b
    Examples:
      waypost users erase alice
    """
    answer = client.erase_user(user_id)
    print_json(answer) if as_json else console().print(f"{answer['id']} was asked for at {answer['asked_at']}")
