"""``waypost schedules``: what is submitted again and again."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, plain, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client


@click.group(short_help="Submit something again and again; hold it, change one time.")
def schedules() -> None:
    """Submit a notification or a bulk job again and again, at local times.

    \b
    Examples:
      waypost schedules put monday --starts 2026-12-07T09:00 --rule "FREQ=WEEKLY;BYDAY=MO" --from news.json
      waypost schedules list
      waypost schedules next monday
      waypost schedules skip monday 2026-12-28T09:00
    """


@schedules.command(short_help="Put a schedule.")
@click.argument("name")
@click.option("--starts", required=True, metavar="LOCAL", help="The first time, such as 2026-12-07T09:00.")
@click.option("--rule", metavar="RRULE", help="When it is repeated, such as FREQ=WEEKLY;BYDAY=MO. Left out: once.")
@click.option("--time-zone", metavar="ZONE", help="Its zone, such as Europe/Zurich. Left out: the user's.")
@click.option("--from", "file", type=click.File(), required=True, help="The notification as JSON; - is standard input.")
@click.option("--bulk", "is_bulk", is_flag=True, help="The file is a bulk job.")
@api_options
@as_json_option
def put(
    client: Client,
    name: str,
    starts: str,
    rule: str | None,
    time_zone: str | None,
    file: IO[str],
    is_bulk: bool,
    as_json: bool,
) -> None:
    """Put a schedule in the place of the one of that name.

    \b
    Examples:
      waypost schedules put monday --starts 2026-12-07T09:00 --rule "FREQ=WEEKLY;BYDAY=MO" --from news.json
    """
    try:
        said = json.load(file)
    except ValueError as misfit:
        raise click.BadParameter(f"is no JSON: {misfit}", param_hint="--from") from None
    body: dict[str, Any] = {"starts": starts, "rule": rule, "time_zone": time_zone}
    body["bulk" if is_bulk else "notification"] = said
    _print(client.ask("PUT", _path(name), {key: each for key, each in body.items() if each is not None}), as_json)


@schedules.command("list")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def list_(client: Client, limit: int, as_json: bool) -> None:
    """List schedules by name.

    \b
    Examples:
      waypost schedules list
    """
    answer = client.ask("GET", "/v1/schedules", limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            each["name"],
            each["status"],
            plain(each["rule"] or "once"),
            each["time_zone"],
            each["next"][0]["local"] if each["next"] else "",
            str(each["sent"]),
            str(each["missed"]),
        )
        for each in answer["items"]
    ]
    columns = ("schedule", "status", "rule", "zone", "next", "sent", "missed")
    console().print(table(columns, rows) if rows else "no schedules")
    if answer["next"]:
        console().print("there are more: raise --limit")


@schedules.command(short_help="Show a schedule.")
@click.argument("name")
@api_options
@as_json_option
def show(client: Client, name: str, as_json: bool) -> None:
    """Show a schedule, its next times, and what became of the last one.

    \b
    Examples:
      waypost schedules show monday
    """
    _print(client.ask("GET", _path(name)), as_json)


@schedules.command("next", short_help="List the next times of a schedule.")
@click.argument("name")
@click.option("--limit", default=10, show_default=True, help="The number of times.")
@api_options
@as_json_option
def next_(client: Client, name: str, limit: int, as_json: bool) -> None:
    """List the next times of a schedule, local and in UTC.

    \b
    Examples:
      waypost schedules next monday --limit 20
    """
    answer = client.ask("GET", _path(name, "occurrences"), limit=limit)
    if as_json:
        print_json(answer)
        return
    for each in answer["items"]:
        console().print(f"{each['local']}  {each['at']}")


@schedules.command(short_help="Hold a schedule.")
@click.argument("name")
@api_options
@as_json_option
def pause(client: Client, name: str, as_json: bool) -> None:
    """Submit nothing until it is resumed; the times in between are not made up for.

    \b
    Examples:
      waypost schedules pause monday
    """
    _print(client.ask("POST", _path(name, "pause")), as_json)


@schedules.command(short_help="Go on with a schedule.")
@click.argument("name")
@api_options
@as_json_option
def resume(client: Client, name: str, as_json: bool) -> None:
    """Go on with the next time from now on.

    \b
    Examples:
      waypost schedules resume monday
    """
    _print(client.ask("POST", _path(name, "resume")), as_json)


@schedules.command(short_help="Leave out one time.")
@click.argument("name")
@click.argument("local")
@api_options
@as_json_option
def skip(client: Client, name: str, local: str, as_json: bool) -> None:
    """Leave out one time of a schedule, by its LOCAL time.

    \b
    Examples:
      waypost schedules skip monday 2026-12-28T09:00
    """
    _print(client.ask("DELETE", _path(name, "occurrences", local)), as_json)


@schedules.command(short_help="Move one time.")
@click.argument("name")
@click.argument("local")
@click.argument("to")
@api_options
@as_json_option
def move(client: Client, name: str, local: str, to: str, as_json: bool) -> None:
    """Move one time of a schedule from LOCAL to another one, once.

    \b
    Examples:
      waypost schedules move monday 2026-12-28T09:00 2026-12-29T11:00
    """
    _print(client.ask("PATCH", _path(name, "occurrences", local), {"to": to}), as_json)


@schedules.command(short_help="Remove a schedule.")
@click.argument("name")
@api_options
@as_json_option
def remove(client: Client, name: str, as_json: bool) -> None:
    """Submit nothing more of a schedule.

    \b
    Examples:
      waypost schedules remove monday
    """
    client.ask("DELETE", _path(name))
    if as_json:
        print_json({"removed": name})
    else:
        console().print(f"{name} is removed")


def _path(*parts: str) -> str:
    return "/v1/schedules/" + "/".join(quote(each, safe="") for each in parts)


def _print(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    out, last = console(), answer["last"]
    out.print(
        f"[bold]{answer['name']}[/]  {answer['status']}  {plain(answer['rule'] or 'once')}  {answer['time_zone']}"
    )
    out.print(f"  sent {answer['sent']}, missed {answer['missed']}")
    if last is not None:
        out.print(f"  last {last['local']}  {short_time(last['at'])}  {plain(last['error'] or last['id'] or '')}")
    for each in answer["next"]:
        out.print(f"  next {each['local']}  {each['at']}")
