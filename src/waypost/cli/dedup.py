"""``waypost dedup``: commands for dedup keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from waypost.cli.composing import composed, notification_options
from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, print_json

if TYPE_CHECKING:
    from waypost.client import Client


@click.group(short_help="Clear dedup keys, so that a notification can be sent again.")
def dedup() -> None:
    """Clear dedup keys.

    \b
    Examples:
      waypost dedup clear alice --title Hi --idempotency-key order-7
    """


@dedup.command(short_help="Clear a notification's dedup keys, so that it can be sent again.")
@notification_options
@api_options
@as_json_option
def clear(client: Client, as_json: bool, **fields: Any) -> None:
    """End the dedup windows of a notification for USER_ID, given as it was sent, so that the next one like it is sent.

    \b
    Examples:
      waypost dedup clear alice --title "Your parcel is here" --body "Left at the front door."
      waypost dedup clear alice --title Hi --data order=7 --idempotency-key order-7
    """
    answer = client.forget(composed(fields))
    if as_json:
        print_json(answer)
    else:
        ended = answer["forgotten"]
        console().print(f"dedup windows ended: {ended}" if ended else "no dedup window was open")
