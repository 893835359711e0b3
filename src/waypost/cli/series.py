"""``waypost series``: steps over days that users go through."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, plain, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client


@click.group(short_help="Steps over days that users go through: put, follow, let join or leave.")
def series() -> None:
    """Let users go through steps over days, until the end or an event.

    \b
    Examples:
      waypost series put basket --from basket.json
      waypost series join basket ann --data plan=premium
      waypost series members basket
      waypost series leave basket ann
    """


@series.command(short_help="Put a series; running members end with the version that they began.")
@click.argument("name")
@click.option("--from", "file", type=click.File(), required=True, help="The series as JSON; - is standard input.")
@api_options
@as_json_option
def put(client: Client, name: str, file: IO[str], as_json: bool) -> None:
    """Put a version of a series.

    \b
    Examples:
      waypost series put basket --from basket.json
    """
    try:
        said = json.load(file)
    except ValueError as misfit:
        raise click.BadParameter(f"is no JSON: {misfit}", param_hint="--from") from None
    _print(client.ask("PUT", _path(name), said), as_json)


@series.command(short_help="Show a series, and how many members it has.")
@click.argument("name")
@api_options
@as_json_option
def show(client: Client, name: str, as_json: bool) -> None:
    """Show a series in its newest version, and how many members it has.

    \b
    Examples:
      waypost series show basket
    """
    _print(client.ask("GET", _path(name)), as_json)


@series.command("list")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def list_(client: Client, limit: int, as_json: bool) -> None:
    """List series by name.

    \b
    Examples:
      waypost series list
    """
    answer = client.ask("GET", "/v1/series", limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [(each["name"], str(each["version"]), str(len(each["steps"]))) for each in answer["items"]]
    console().print(table(("series", "version", "steps"), rows) if rows else "no series")
    if answer["next"]:
        console().print("there are more: raise --limit")


@series.command(short_help="List the members of a series.")
@click.argument("name")
@click.option("--after", metavar="USER", help="Begin after this user.")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def members(client: Client, name: str, after: str | None, limit: int, as_json: bool) -> None:
    """List the members of a series, and where they are.

    \b
    Examples:
      waypost series members basket
    """
    answer = client.ask("GET", _path(name, "members"), after=after, limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            plain(each["user_id"]),
            each["state"],
            str(each["version"]),
            each["next_step"] or "",
            short_time(each["due_at"]) if each["due_at"] else "",
            plain(each["why"] or ""),
        )
        for each in answer["items"]
    ]
    console().print(table(("user", "state", "version", "next", "due", "why"), rows) if rows else "no members")
    if answer["next"]:
        console().print(f"there are more: --after {answer['next']}", markup=False)


@series.command(short_help="Let a user join a series.")
@click.argument("name")
@click.argument("user_id")
@click.option("--data", multiple=True, metavar="NAME=VALUE", help="For conditions; may be repeated.")
@click.option("--again", is_flag=True, help="Begin anew where the user is through, or left.")
@api_options
@as_json_option
def join(client: Client, name: str, user_id: str, data: tuple[str, ...], again: bool, as_json: bool) -> None:
    """Let a user join a series.

    \b
    Examples:
      waypost series join basket ann --data plan=premium
    """
    if unfit := [each for each in data if "=" not in each]:
        raise click.BadParameter(f"{unfit[0]} is not NAME=VALUE", param_hint="--data")
    said = dict(each.split("=", 1) for each in data)
    _print_member(client.ask("PUT", _path(name, "members", user_id), {"data": said, "again": again}), as_json)


@series.command(short_help="Show where a member is.")
@click.argument("name")
@click.argument("user_id")
@api_options
@as_json_option
def member(client: Client, name: str, user_id: str, as_json: bool) -> None:
    """Show where a member of a series is, and what became of each step.

    \b
    Examples:
      waypost series member basket ann
    """
    _print_member(client.ask("GET", _path(name, "members", user_id)), as_json)


@series.command(short_help="Let a member leave.")
@click.argument("name")
@click.argument("user_id")
@click.option("--why", help="Why, for whoever looks.")
@api_options
@as_json_option
def leave(client: Client, name: str, user_id: str, why: str | None, as_json: bool) -> None:
    """Tell a member of a series nothing more of it.

    \b
    Examples:
      waypost series leave basket ann --why "asked by telephone"
    """
    said = {} if why is None else {"why": why}
    _print_member(client.ask("POST", _path(name, "members", user_id, "exit"), said), as_json)


@series.command(short_help="Remove a series with its members.")
@click.argument("name")
@api_options
@as_json_option
def remove(client: Client, name: str, as_json: bool) -> None:
    """Remove all versions and members of a series.

    \b
    Examples:
      waypost series remove basket
    """
    client.ask("DELETE", _path(name))
    if as_json:
        print_json({"removed": name})
    else:
        console().print(f"{name} is removed")


def _path(*parts: str) -> str:
    return "/v1/series/" + "/".join(quote(each, safe="") for each in parts)


def _print(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    out, members = console(), answer["members"]
    told = ", ".join(f"{n} {state}" for state, n in members.items())
    out.print(f"[bold]{answer['name']}[/]  version {answer['version']}  members: {told}")
    for each in answer["steps"]:
        at = f" at {each['at']}" if each.get("at") else ""
        out.print(f"  {each['name']}  after {each.get('after') or 'nothing'}{at}")
    if answer["exit_on"]:
        out.print(f"  ends with {', '.join(answer['exit_on'])}")


def _print_member(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    out = console()
    out.print(f"[bold]{plain(answer['user_id'])}[/]  {answer['state']}  version {answer['version']}")
    for each in answer["done"]:
        out.print(f"  {each['step']}  {short_time(each['at'])}  {plain(each['error'] or each['id'] or 'skipped')}")
    if answer["next_step"]:
        out.print(f"  next {answer['next_step']}  {short_time(answer['due_at'])}")
    if answer["why"]:
        out.print(f"  left: {plain(answer['why'])}")
