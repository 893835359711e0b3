"""``waypost segments``: filters of users by name, and whom one chooses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

import click

from waypost.cli.composing import read_object
from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client


@click.group(short_help="Name filters of users, and see whom one chooses.")
def segments() -> None:
    """List, preview, put and delete segments: filters of users, for bulk sends.

    \b
    Examples:
      waypost segments preview --filter filter.json
      waypost segments put lapsed --filter filter.json
      waypost segments list
    """


filter_option = click.option(
    "--filter", "file", type=click.File(), help="A JSON file with the filter; - is standard input."
)


@segments.command("list")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def list_(client: Client, limit: int, as_json: bool) -> None:
    """List segments by name.

    \b
    Example:
      waypost segments list --json
    """
    answer = client.segments(limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [(each["name"], short_time(each["changed_at"]), json.dumps(each["filter"])) for each in answer["items"]]
    console().print(table(("segment", "changed", "filter"), rows) if rows else "no segments")


@segments.command()
@click.argument("name", required=False)
@filter_option
@api_options
@as_json_option
def preview(client: Client, name: str | None, file: TextIO | None, as_json: bool) -> None:
    """Count the users whom the segment NAME or a filter chooses now, and show ten of them.

    \b
    Examples:
      waypost segments preview lapsed
      echo '{"topic": "news"}' | waypost segments preview --filter -
    """
    if (name is None) == (file is None):
        raise click.UsageError("Give the name of a segment, or a --filter.")
    answer = client.preview_segment(read_object(file) if file is not None else client.segment(name or "")["filter"])
    if as_json:
        print_json(answer)
        return
    examples = f", such as {', '.join(answer['examples'])}" if answer["examples"] else ""
    click.echo(f"{answer['count']} users{examples}")


@segments.command()
@click.argument("name")
@filter_option
@api_options
@as_json_option
def put(client: Client, name: str, file: TextIO | None, as_json: bool) -> None:
    """Give a filter the name NAME, in the place of the one before.

    \b
    Example:
      waypost segments put lapsed --filter filter.json
    """
    if file is None:
        raise click.UsageError("Give the filter with --filter.")
    answer: dict[str, Any] = client.put_segment(name, read_object(file))
    print_json(answer) if as_json else click.echo(f"{answer['name']} is stored")


@segments.command()
@click.argument("name")
@api_options
@as_json_option
def delete(client: Client, name: str, as_json: bool) -> None:
    """Forget the segment NAME; bulk jobs that began with it go on.

    \b
    Example:
      waypost segments delete lapsed
    """
    client.remove_segment(name)
    print_json({"name": name}) if as_json else click.echo(f"{name} is deleted")
