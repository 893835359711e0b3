"""``waypost alerts``: notifications that nobody moves, to be retried or resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client


@click.group(short_help="List, retry and resolve alerts of stuck notifications.")
def alerts() -> None:
    """List alerts of notifications that nobody moves; retry or resolve them.

    \b
    Examples:
      waypost alerts list --open
      waypost alerts retry 019c1234-5678-7abc-8def-0123456789ab
      waypost alerts resolve 019c1234-5678-7abc-8def-0123456789ab
    """


@alerts.command("list")
@click.option("--open/--resolved", "is_open", default=None, help="Only those that are open, or resolved.")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def list_(client: Client, as_json: bool, is_open: bool | None, limit: int) -> None:
    """List alerts, the newest notification first.

    \b
    Examples:
      waypost alerts list
      waypost alerts list --open --json
    """
    resolved = None if is_open is None else str(not is_open).lower()
    answer = client.alerts(resolved=resolved, limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            each["notification_id"],
            each["alert_type"],
            each["reason"],
            each["db_status"],
            each["redis_status"] or "",
            str(each["retry_count"]),
            short_time(each["raised_at"]),
            each["how"] or "",
        )
        for each in answer["items"]
    ]
    columns = ("notification", "type", "reason", "status", "record", "retries", "raised", "resolved")
    console().print(table(columns, rows) if rows else "no alerts")
    if answer["next"]:
        console().print("there are more: raise --limit")


@alerts.command(short_help="Offer the notification of an alert to workers again.")
@click.argument("notification_id")
@api_options
@as_json_option
def retry(client: Client, notification_id: str, as_json: bool) -> None:
    """Offer the notification of an alert to workers again, or begin a new round of one that failed.

    \b
    Examples:
      waypost alerts retry 019c1234-5678-7abc-8def-0123456789ab
    """
    answer = client.retry_alert(notification_id)
    if as_json:
        print_json(answer)
    else:
        console().print(f"{notification_id} is sent again")


@alerts.command(short_help="Close an alert; its notification has failed.")
@click.argument("notification_id")
@api_options
@as_json_option
def resolve(client: Client, notification_id: str, as_json: bool) -> None:
    """Close an alert. A notification that is not final by now has failed.

    \b
    Examples:
      waypost alerts resolve 019c1234-5678-7abc-8def-0123456789ab
    """
    answer = client.resolve_alert(notification_id)
    if as_json:
        print_json(answer)
    else:
        console().print(f"the alert of {notification_id} is resolved")
