"""``waypost migrate``: bring the store to today's schema."""

from __future__ import annotations

from pathlib import Path

import click

from waypost.cli.doors import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json


@click.command(short_help="Bring the store to today's schema.")
@config_option
@as_json_option
def migrate(config_path: Path | None, as_json: bool) -> None:
    """Bring the store to today's schema. ``serve`` does this by itself; here it is a step of its own.

    \b
    Example:
      waypost migrate --config waypost.yaml
    """
    config, _ = read_config(config_path)
    from waypost.bootstrap.admin import migrate_store

    before, after = migrate_store(config)
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        console().print(f"the store has revision {after} already")
    else:
        console().print(f"the store has revision {after} now, before that {before or 'nothing'}")
