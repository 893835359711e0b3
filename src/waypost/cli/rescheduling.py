"""``waypost cancel`` and ``waypost reschedule``: what waits is taken back, or sent at another time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json

if TYPE_CHECKING:
    from waypost.client import Client


@click.command(short_help="Take back what is unsent of a notification.")
@click.argument("notification_id")
@api_options
@as_json_option
def cancel(client: Client, notification_id: str, as_json: bool) -> None:
    """Take back what is unsent of a notification; what is being sent ends with its present attempt.

    \b
    Examples:
      waypost cancel 019c1234-5678-7abc-8def-0123456789ab
    """
    answer = client.cancel(notification_id)
    if as_json:
        print_json(answer)
    else:
        console().print(
            f"{answer['result']}: {answer['cancelled']} stopped, {answer['handed_over']} handed over before"
        )


@click.command(short_help="Send a scheduled notification at another time.")
@click.argument("notification_id")
@click.option("--scheduled-at", metavar="TIME", help="The new time, such as 2026-01-31T09:00:00Z.")
@click.option("--send-at", metavar="LOCAL", help="The new time on the user's clock, such as 2026-01-31T09:00.")
@api_options
@as_json_option
def reschedule(
    client: Client, notification_id: str, scheduled_at: str | None, send_at: str | None, as_json: bool
) -> None:
    """Send a notification that still waits for its time at another one.

    \b
    Examples:
      waypost reschedule 019c1234-5678-7abc-8def-0123456789ab --scheduled-at 2026-01-31T09:00:00Z
      waypost reschedule 019c1234-5678-7abc-8def-0123456789ab --send-at 2026-01-31T09:00
    """
    if (scheduled_at is None) == (send_at is None):
        raise click.UsageError("Give --scheduled-at or --send-at.")
    said = {"scheduled_at": scheduled_at} if send_at is None else {"send_at": send_at}
    answer = client.ask("PATCH", f"/v1/notifications/{notification_id}", said)
    if as_json:
        print_json(answer)
    else:
        console().print(f"{notification_id} is due at {answer['scheduled_at']}")
