"""``waypost migrate``: bring the store to today's schema."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json


@click.command(short_help="Migrate the store to the current schema.")
@config_option
@as_json_option
def migrate(config_path: Path | None, as_json: bool) -> None:
    """Migrate the store, and the tables in Cassandra, to the current schema.

    ``serve`` does the same when it starts.

    \b
    Example:
      waypost migrate --config waypost.yaml
    """
    config, _ = read_config(config_path)
    from waypost.bootstrap.admin import migrate_store

    found: dict[str, tuple[object, object]] = {"the store": migrate_store(config)}
    if config.cassandra is not None:
        from waypost.bootstrap.devices import migrate_devices

        found["Cassandra"] = asyncio.run(migrate_devices(config.cassandra))
    if as_json:
        store, *devices = ({"before": before, "after": after} for before, after in found.values())
        print_json(store | {"devices": each for each in devices})  # noqa: B035 - one at most
        return
    for what, (before, after) in found.items():
        if before == after:
            console().print(f"{what} has revision {after} already")
        else:
            console().print(f"{what} has revision {after} now, before that {before or 'nothing'}")
