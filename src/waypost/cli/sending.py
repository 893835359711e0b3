"""``waypost send``: one notification, or a file of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

import click

from waypost.cli.composing import composed, notification_options
from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, colored, console, print_json, progress

if TYPE_CHECKING:
    from waypost.client import Client
    from waypost.client.types import BatchResult

BATCH = 1_000
ARRIVED = frozenset({"sent", "partial", "delivered"})
"""The final statuses of a notification that reached a provider at all."""


@click.command(short_help="Send a notification, or a file of them.")
@notification_options
@click.option(
    "--many",
    type=click.File(),
    help="Send every notification in this file, one JSON object per line; - is standard input.",
)
@click.option(
    "--wait", is_flag=True, help="Wait until it is final and show its journey; exit with 1 if nothing was sent."
)
@click.option(
    "--wait-timeout", "wait_timeout_s", default=60.0, show_default=True, help="The longest time to wait, seconds."
)
@api_options
@as_json_option
def send(client: Client, many: TextIO | None, wait: bool, wait_timeout_s: float, as_json: bool, **fields: Any) -> None:
    """Send a notification to USER_ID, or to one device by its token.

    \b
    Examples:
      waypost send alice --title "Your parcel is here" --body "Left at the front door." --wait
      waypost send alice --kind silent --data sync=inbox
      waypost send alice --title Hi --data order=7 --urgency high --ttl 600 --idempotency-key order-7
      echo "$REGISTRATION_TOKEN" | waypost send --token - --platform android --title Hi
      waypost send --many notifications.ndjson
      echo '{"user_id": "alice", "title": "Hi"}' | waypost send --from -
    """
    if many is not None:
        if wait or any(value not in (None, (), []) for value in fields.values()):
            raise click.UsageError("With --many everything is in the file; give nothing else.")
        _send_many(client, many, as_json)
        return
    answer = client.send(composed(fields))
    if as_json and not wait:
        print_json(answer)
    elif answer["deduplicated"] and not as_json:
        console().print(f"{answer['id']} said the same before; nothing new was sent")
    elif not wait:
        console().print(f"{answer['id']} {colored(answer['status'])}")
    if wait:
        _wait(client, answer["id"], wait_timeout_s, as_json)


def _wait(client: Client, notification_id: str, timeout_s: float, as_json: bool) -> None:
    from waypost.cli.journey import draw

    detail = client.wait(notification_id, timeout_s)
    print_json(detail) if as_json else draw(detail)
    notification = detail["notification"]
    if notification["finished_at"] is None:
        raise click.ClickException(f"{notification_id} is not final after {timeout_s:g} s")
    if notification["status"] not in ARRIVED:
        raise click.ClickException(f"{notification_id} ended {notification['status']}")


def _send_many(client: Client, file: TextIO, as_json: bool) -> None:
    total = _count(file)
    accepted = deduplicated = 0
    refused: list[dict[str, Any]] = []
    lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    with progress() as bar:
        task = bar.add_task("sending", total=total)
        while batch := list(islice(lines, BATCH)):
            answer = client.send_batch([_parsed(number, line) for number, line in batch])
            accepted += answer["accepted"]
            deduplicated += answer["deduplicated"]
            refused += _refusals([number for number, _ in batch], answer["results"])
            bar.advance(task, len(batch))
    if as_json:
        print_json({"accepted": accepted, "deduplicated": deduplicated, "refused": refused})
    else:
        console().print(f"{accepted} accepted, {deduplicated} said before, {len(refused)} refused")
        for each in refused[:20]:
            click.echo(f"  line {each['line']}: {each['code']}: {each['detail']}", err=True)
    if refused:
        raise click.ClickException(f"{len(refused)} refused")


def _count(file: TextIO) -> int | None:
    """Count the notifications in *file*; None where it can be read only once."""
    if not file.seekable():
        return None
    count = sum(1 for line in file if line.strip())
    file.seek(0)
    return count


def _parsed(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise click.ClickException(f"line {number} is not JSON; nothing from its batch on was sent") from None


def _refusals(numbers: list[int], results: list[BatchResult]) -> Iterator[dict[str, Any]]:
    for item, (number, result) in enumerate(zip(numbers, results, strict=True)):
        error = result.get("error")
        if error:
            detail = error["detail"].replace(f"notifications[{item}].", "").replace(f"notifications[{item}]: ", "")
            yield {"line": number, "code": error["code"], "detail": detail}
