"""``waypost move``: from a SQLite file to PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json, progress, table

if TYPE_CHECKING:
    from rich.progress import TaskID


@click.command(short_help="Move a stopped SQLite installation to PostgreSQL.")
@click.option("--to", required=True, metavar="URL", help="An empty database; ${NAME} in it is of the environment.")
@config_option
@as_json_option
def move(to: str, config_path: Path | None, as_json: bool) -> None:
    """Move all that is in the SQLite store of a stopped Waypost into an empty PostgreSQL database.

    All of it or nothing: what breaks off is begun again with the same command. Afterwards the file is served no more.
    A password is in PGPASSWORD or a file of libpq's, or is named in single quotes as below; never written out.

    \b
    Examples:
      waypost move --to postgresql://waypost@127.0.0.1/waypost
      waypost move --to 'postgresql://waypost:${WAYPOST_DB_PASSWORD}@db.example/waypost'
    """
    config, _ = read_config(config_path)
    from waypost.bootstrap.moving import move_to

    with progress() as bar:
        tasks: dict[str, TaskID] = {}

        def on_progress(name: str, sent: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=sent)

        moved = move_to(config, to, on_progress)
    if as_json:
        print_json({"rows": moved.rows})
        return
    console().print(table(("table", "rows"), [(name, f"{n:,}") for name, n in moved.rows.items() if n]))
    console().print("All rows were counted on both sides. Write the new URL into `store`, then start Waypost.")
