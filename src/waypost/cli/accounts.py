"""``waypost accounts``: who may log in to the dashboard."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.bootstrap.accounts import MadeAccount

ROLES = ("viewer", "operator", "campaigner", "admin")
_second_factor = click.option(
    "--second-factor/--no-second-factor", default=True, help="Whether an authenticator's code is asked for. [yes]"
)


@click.group(short_help="Create, list and remove accounts of the dashboard.")
def accounts() -> None:
    """Create, list and remove accounts of the dashboard. Opens the store itself, also while Waypost runs.

    \b
    Examples:
      waypost accounts create ann --role operator
      waypost accounts list
      waypost accounts reset ann
      waypost accounts remove ann
    """


@accounts.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the person may do.")
@_second_factor
@config_option
@as_json_option
def create(name: str, role: str, second_factor: bool, config_path: Path | None, as_json: bool) -> None:
    """Create an account, and show its password and second factor once.

    \b
    Examples:
      waypost accounts create ann --role operator
      waypost accounts create screen --role viewer --no-second-factor
    """
    _put(name, role, second_factor, config_path, is_new=True, as_json=as_json)


@accounts.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help="What the person may do from now on.")
@_second_factor
@config_option
@as_json_option
def reset(name: str, role: str | None, second_factor: bool, config_path: Path | None, as_json: bool) -> None:
    """Give an account a new password and second factor, and end its sessions.

    \b
    Examples:
      waypost accounts reset ann
      waypost accounts reset ann --role admin
    """
    _put(name, role, second_factor, config_path, is_new=False, as_json=as_json)


def _put(
    name: str, role: str | None, second_factor: bool, config_path: Path | None, *, is_new: bool, as_json: bool
) -> None:
    from msgspec.structs import asdict

    from waypost.bootstrap.accounts import is_taken, put_account

    if not (name.isascii() and name.isprintable() and 1 <= len(name) <= 64) or ":" in name or " " in name:
        raise click.BadParameter("1 to 64 characters of ASCII, no space and no colon", param_hint="NAME")
    if is_taken(name):
        why = f"the record of orders calls somebody without an account {name}: choose another name"
        raise click.BadParameter(why, param_hint="NAME")
    config, _ = read_config(config_path)
    made = asyncio.run(put_account(config, name, role, second_factor=second_factor, is_new=is_new))
    if made is None:
        why = "there is one already; reset gives it a new password" if is_new else "there is none; create makes one"
        raise click.ClickException(f"account {name}: {why}")
    if as_json:
        print_json(asdict(made))
    else:
        _show(made)


def _show(made: MadeAccount) -> None:
    click.echo(f"account        {made.name}, {made.role}")
    click.echo(f"password       {made.password}")
    if made.second_factor is not None:
        click.echo(f"second factor  {made.second_factor}")
    click.echo("These are shown once. An authenticator takes the second factor as a link or by its secret.", err=True)


@accounts.command("list")
@config_option
@as_json_option
def list_(config_path: Path | None, as_json: bool) -> None:
    """List the accounts.

    \b
    Examples:
      waypost accounts list --json
    """
    from waypost.bootstrap.accounts import list_accounts
    from waypost.domain.time import isoformat

    config, _ = read_config(config_path)
    found = asyncio.run(list_accounts(config))
    rows = [(each.name, each.role, each.totp is not None, isoformat(each.created_at)) for each in found]
    if as_json:
        print_json([dict(zip(("name", "role", "second_factor", "created_at"), row, strict=True)) for row in rows])
        return
    shown = [(name, role, "yes" if has_factor else "no", short_time(at)) for name, role, has_factor, at in rows]
    console().print(table(["name", "role", "second factor", "created"], shown))


@accounts.command()
@click.argument("name")
@config_option
@as_json_option
def remove(name: str, config_path: Path | None, as_json: bool) -> None:
    """Remove an account; whoever is logged in with it is not any more.

    \b
    Examples:
      waypost accounts remove ann
    """
    from waypost.bootstrap.accounts import remove_account

    config, _ = read_config(config_path)
    if not asyncio.run(remove_account(config, name)):
        raise click.ClickException(f"there is no account {name}")
    if as_json:
        print_json({"removed": name})
    else:
        click.echo(f"{name} is removed")


@accounts.command()
@click.argument("name")
@config_option
@as_json_option
def logout(name: str, config_path: Path | None, as_json: bool) -> None:
    """End every session of an account, at once.

    \b
    Examples:
      waypost accounts logout ann
    """
    from waypost.bootstrap.accounts import end_sessions

    config, _ = read_config(config_path)
    ended = asyncio.run(end_sessions(config, name))
    if as_json:
        print_json({"ended": ended})
    else:
        click.echo(f"{ended} session{'' if ended == 1 else 's'} ended")
