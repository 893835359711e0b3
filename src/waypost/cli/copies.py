"""``waypost backup`` and ``waypost restore``: a copy of the store in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, plain, print_json, progress

_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.command(short_help="Copy the store into a file, while Waypost runs.")
@_file
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@config_option
@as_json_option
def backup(file: Path, force: bool, config_path: Path | None, as_json: bool) -> None:
    """Copy the SQLite store as it is at this moment into FILE, also while Waypost runs, and check the copy.

    A copy of the file itself lacks what is still in the log beside it. FILE holds content and tokens: its mode is 0600.

    \b
    Examples:
      waypost backup /var/backups/waypost.db
      waypost backup /var/backups/waypost.db --force --json
    """
    config, _ = read_config(config_path)
    from waypost.bootstrap.copies import back_up

    if file.exists() and not force:
        raise click.ClickException(f"{file} exists: --force overwrites it")
    with _shown("copying") as on_progress:
        found = back_up(config, file, on_progress)
    if as_json:
        print_json({"file": str(file), "revision": found.revision, "open": found.open, "bytes": found.bytes})
    else:
        console().print(f"{plain(str(file))}: {found.bytes:,} bytes, sound, {found.open:,} open notifications")


@click.command(short_help="Put a backup in the place of the store.")
@_file
@click.option("--force", is_flag=True, help="Replace a store that is not empty.")
@config_option
@as_json_option
def restore(file: Path, force: bool, config_path: Path | None, as_json: bool) -> None:
    """Put a backup in the place of the SQLite store, while no Waypost serves it.

    What is open in FILE goes on, so what was sent since is sent again; of at_most_once, what was due ends expired
    instead. What was accepted since is lost. Users who were erased since are erased again, where the store that is
    replaced can still be read; where it cannot, it is said that nobody knows them.

    \b
    Examples:
      waypost restore /var/backups/waypost.db
      waypost restore /var/backups/waypost.db --force
    """
    config, _ = read_config(config_path)
    from waypost.bootstrap.copies import restore as put_back

    if not file.exists():
        raise click.BadParameter(f"there is no {file}", param_hint="FILE")
    with _shown("restoring") as on_progress:
        found = put_back(config, file, on_progress, force=force)
    inside, ended, erased = found.inside, found.ended, found.erased_again
    if as_json:
        said = {"file": str(file), "revision": inside.revision, "open": inside.open, "expired": ended}
        print_json({**said, "erased_again": erased})
        return
    console().print(f"{inside.open:,} open notifications go on; what of them was sent since the backup is sent again")
    if ended:
        console().print(f"{ended:,} of them are at_most_once and were due: they end expired instead")
    if erased is None:
        console().print(
            "who was erased since the backup is not known: the store that it replaces does not say. Erase them again"
        )
    elif erased:
        console().print(f"{erased:,} users were erased since the backup: they are erased again, from the next start on")


@contextmanager
def _shown(what: str) -> Iterator[Callable[[int, int], None]]:
    with progress() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
