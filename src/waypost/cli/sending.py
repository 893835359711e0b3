"""``waypost send``: one notification, or a file of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

import click

from waypost.cli.composing import composed, notification_options
from waypost.cli.doors import api_options
from waypost.cli.printing import as_json_option, colored, console, print_json, progress

if TYPE_CHECKING:
    from waypost.client import Client

BATCH = 1_000


@click.command(short_help="Send a notification, or a file of them.")
@notification_options
@click.option("--many", type=click.File(), help="A file with one notification as JSON a line; - is standard input.")
@click.option("--wait", is_flag=True, help="Wait until it is final, and show how it travelled.")
@click.option("--wait-timeout", "wait_timeout_s", default=60.0, show_default=True, help="Seconds to wait at most.")
@api_options
@as_json_option
def send(client: Client, many: TextIO | None, wait: bool, wait_timeout_s: float, as_json: bool, **fields: Any) -> None:
    """Send a notification to USER_ID.

    \b
    Examples:
      waypost send alice --title "Your parcel is here" --body "Left at the front door." --wait
      waypost send alice --kind silent --data sync=inbox
      waypost send alice --title Hi --data order=7 --urgency high --ttl 600 --idempotency-key order-7
      waypost send --many notifications.ndjson
      echo '{"user_id": "alice", "title": "Hi"}' | waypost send --from -
    """
    if many is not None:
        _send_many(client, many, as_json)
        return
    answer = client.send(composed(fields))
    if wait:
        from waypost.cli.journey import draw, wait_until_final

        story = wait_until_final(client, answer["id"], wait_timeout_s)
        print_json(story) if as_json else draw(story)
        if story["notification"]["finished_at"] is None:
            raise click.ClickException(f"{answer['id']} is not final after {wait_timeout_s:g} s")
    elif as_json:
        print_json(answer)
    elif answer["deduplicated"]:
        console().print(f"{answer['id']} said the same before; nothing new was sent")
    else:
        console().print(f"{answer['id']} {colored(answer['status'])}")


def _send_many(client: Client, file: TextIO, as_json: bool) -> None:
    accepted = deduplicated = 0
    refused: list[dict[str, Any]] = []
    lines = enumerate((line for line in file if line.strip()), start=1)
    with progress() as bar:
        task = bar.add_task("sending", total=None)
        while batch := list(islice(lines, BATCH)):
            answer = client.send_batch([_parsed(number, line) for number, line in batch])
            accepted += answer["accepted"]
            deduplicated += answer["deduplicated"]
            refused += _refusals(batch[0][0], answer["results"])
            bar.advance(task, len(batch))
    if as_json:
        print_json({"accepted": accepted, "deduplicated": deduplicated, "refused": refused})
    else:
        console().print(f"{accepted} accepted, {deduplicated} said before, {len(refused)} refused")
        for each in refused[:20]:
            click.echo(f"  {each['item']}: {each['code']}: {each['detail']}", err=True)
    if refused:
        raise click.ClickException(f"{len(refused)} were refused")


def _parsed(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise click.ClickException(f"item {number} is not JSON; nothing from its batch on was sent") from None


def _refusals(first: int, results: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for number, result in enumerate(results, start=first):
        error = result.get("error")
        if error:
            yield {"item": number, "code": error["code"], "detail": error["detail"]}
