"""``waypost dead``: deliveries that failed for good, and sending them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json, short_time, table
from waypost.cli.replaying import replay_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from waypost.client import Client


@click.group(short_help="List and replay deliveries that failed for good.")
def dead() -> None:
    """List and replay deliveries that failed for good.

    \b
    Examples:
      waypost dead list --code BadDeviceToken
      waypost dead replay 019c1234-5678-7abc-8def-0123456789ab
      waypost dead replay --code InvalidProviderToken --since 2026-01-31T09:00:00Z
    """


def _filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--since", metavar="TIME", help="Failed at or after, such as 2026-01-31T09:00:00Z.")(command)
    command = click.option("--user", "user_id", metavar="USER_ID", help="Only this user's.")(command)
    return click.option("--code", help="Only with this word of the provider.")(command)


@dead.command("list")
@_filter_options
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def list_(client: Client, as_json: bool, limit: int, **query: str | None) -> None:
    """List dead letters, newest first.

    \b
    Examples:
      waypost dead list
      waypost dead list --user alice --json
    """
    answer = client.dead(limit=limit, **query)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            each["notification"]["id"],
            each["notification"]["user_id"],
            each["receipt"]["device_id"],
            each["receipt"]["channel"],
            each["receipt"]["code"],
            each["receipt"]["reason"],
            short_time(each["receipt"]["resolved_at"]),
        )
        for each in answer["items"]
    ]
    columns = ("notification", "user", "device", "channel", "code", "reason", "failed")
    console().print(table(columns, rows) if rows else "no dead letters")
    if answer["next"]:
        console().print("there are more: raise --limit")


@dead.command(short_help="Send dead letters again.")
@click.argument("ids", nargs=-1)
@_filter_options
@click.option("--all", "every", is_flag=True, help="Every dead letter.")
@click.option("--ttl", "ttl_s", type=int, metavar="SECONDS", help="How long the new round is worth sending.")
@api_options
@as_json_option
def replay(
    client: Client, ids: tuple[str, ...], every: bool, ttl_s: int | None, as_json: bool, **query: str | None
) -> None:
    """Start a new round for the dead letters of the notifications IDS, or of what a filter finds.

    \b
    Examples:
      waypost dead replay 019c1234-5678-7abc-8def-0123456789ab
      waypost dead replay --code InvalidProviderToken
      waypost dead replay --all --ttl 3600
    """
    wanted = {name: value for name, value in query.items() if value is not None}
    if sum((bool(ids), bool(wanted), every)) != 1:
        raise click.UsageError("Name notifications, or a filter, or --all.")

    def ask(cursor: str | None) -> dict[str, Any]:
        if ids:
            return client.replay_dead(ids=ids, ttl_s=ttl_s)
        return client.replay_dead(filter=wanted, cursor=cursor, ttl_s=ttl_s)

    replay_all(ask, as_json)
