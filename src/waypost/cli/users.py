"""``waypost users``: what there is of a user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from waypost.cli.connect import api_options
from waypost.cli.lists import media_of, open_list
from waypost.cli.printing import as_json_option, console, print_json, table

if TYPE_CHECKING:
    from waypost.client import Client


@click.group(short_help="Import users, or forget one.")
def users() -> None:
    """Manage users.

    \b
    Examples:
      waypost users import users.csv
      waypost users erase alice
    """


@users.command("import", short_help="Import users' attributes.")
@click.argument("file", type=click.Path(path_type=Path))
@api_options
@as_json_option
def import_(client: Client, file: Path, as_json: bool) -> None:
    """Change the profiles of the users in FILE, a .csv, .ndjson or .jsonl; exit with 1 where a line is faulty.

    What a line does not name stays as it is.

    \b
    Examples:
      waypost users import users.csv
      waypost users import users.ndjson --json
    """
    media = media_of(file, "FILE")
    with open_list(file, "FILE") as lines:
        answer = client.import_users(lines, media)
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{answer['users']} users, {answer['faulty']} faulty lines")
        if faults := [(str(fault["line"]), fault["why"]) for fault in answer["faults"]]:
            console().print(table(("line", "why"), faults))
    if answer["faulty"]:
        raise click.exceptions.Exit(1)


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
