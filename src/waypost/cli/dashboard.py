"""``waypost dashboard``: a link that lets a browser on this machine in."""

from __future__ import annotations

from pathlib import Path

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, print_json


@click.command(short_help="Print a link that opens the dashboard on this machine.")
@config_option
@click.option("--url", help="Where Waypost answers, if the configuration leaves its port open.")
@click.option("--renew", is_flag=True, help="End every link and session from before.")
@as_json_option
def dashboard(config_path: Path | None, url: str | None, renew: bool, as_json: bool) -> None:
    """Print a link that opens the dashboard in a browser on this machine, for twelve hours.

    Run it as the user that Waypost runs as, also while it runs. Where people log in, it prints the address.

    \b
    Examples:
      waypost dashboard
      waypost dashboard --renew
      waypost dashboard --url http://127.0.0.1:41234
    """
    from waypost.bootstrap.dashboard import dashboard_door
    from waypost.domain.time import isoformat

    config, _ = read_config(config_path)
    door = dashboard_door(config, url, renew=renew)
    if as_json:
        print_json({"url": door.url, "good_until": None if door.good_until is None else isoformat(door.good_until)})
        return
    click.echo(door.url)
    if door.good_until is None:
        click.echo("People log in there: `waypost accounts create`, or the provider.", err=True)
    else:
        click.echo("Whoever opens it on this machine is an operator. It is good for twelve hours.", err=True)
