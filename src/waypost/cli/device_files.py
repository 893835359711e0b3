"""``waypost devices export`` and ``import``: the registry as a file."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json, progress

if TYPE_CHECKING:
    from waypost.bootstrap.device_rows import RefusedRow
    from waypost.config import Config

SHOWN = 100
"""The most refused rows that are told one by one; all are counted."""
_formats = click.Choice(["jsonl", "csv", "tokens"])
_app = click.option("--app", required=True, help="Whose devices they are, as the configuration names it.")


@click.command("export", short_help="Write an app's devices into a file.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), default="-")
@_app
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), help="Default: by FILE's ending, or jsonl.")
@config_option
@as_json_option
def export(file: Path, app: str, form: str | None, config_path: Path | None, as_json: bool) -> None:
    """Write the active devices of an app into a new FILE, or to standard output: JSON Lines or CSV.

    Opens the store itself, also while Waypost runs. The file holds push tokens: its mode is 0600.

    \b
    Examples:
      waypost devices export devices.jsonl --app demo
      waypost devices export --app demo --format csv > devices.csv
    """
    config = _config_of(config_path, app)
    is_stdout = str(file) == "-"
    if is_stdout and as_json:
        raise click.UsageError("--json tells what was written into FILE: name one")
    if form is None:
        form = "jsonl" if is_stdout else _form_of(file)
    with ExitStack() as held:
        out = sys.stdout if is_stdout else held.enter_context(_created(file))
        count = asyncio.run(_export(config, app, out, form))
    if as_json:
        print_json({"file": str(file), "devices": count})
    elif not is_stdout:
        console().print(f"{count:,} devices")


@click.command("import", short_help="Register the devices of a file.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@_app
@click.option("--format", "form", type=_formats, help="Default: by FILE's ending: .jsonl, .csv, .txt (tokens).")
@click.option("--platform", help="The platform of rows that name none, such as android.")
@click.option("--dry-run", is_flag=True, help="Check every row and write nothing.")
@config_option
@as_json_option
def import_(
    file: Path, app: str, form: str | None, platform: str | None, dry_run: bool, config_path: Path | None, as_json: bool
) -> None:
    """Register the devices of FILE that are not known yet; those that are stay as they are, so repeat it at will.

    CSV has the names of its columns in the first line, such as user,token,platform; an export of OneSignal is read as
    it is. A list of tokens has one a line, and a user of its own for each. Opens the store itself, also while
    Waypost runs.

    \b
    Examples:
      waypost devices import devices.csv --app demo --dry-run
      waypost devices import devices.jsonl --app demo
      waypost devices import tokens.txt --app demo --platform android
    """
    config = _config_of(config_path, app)
    is_stdin = str(file) == "-"
    if form is None and is_stdin:
        raise click.UsageError("standard input has no ending: give --format")
    form = form or _form_of(file)
    refused: list[RefusedRow] = []
    with ExitStack() as held:
        rows = sys.stdin if is_stdin else held.enter_context(_opened(file))
        told = asyncio.run(_import(config, app, rows, form, platform, dry_run, refused))
    if as_json:
        errors = [{"line": each.line, "code": each.code, "why": each.why} for each in refused]
        print_json({**told, "dry_run": dry_run, "errors": errors})
    else:
        for each in refused:
            click.echo(f"line {each.line}: {each.code}: {each.why}", err=True)
        names = {
            "created": "would be new" if dry_run else "new",
            "known": "known",
            "dead": "dead",
            "refused": "refused",
        }
        console().print(
            f"{told['read']:,} rows: " + ", ".join(f"{told[name]:,} {word}" for name, word in names.items())
        )
        if told["pushed_out"]:
            console().print(f"{told['pushed_out']:,} deactivated: the cap of devices is reached")
    if told["refused"]:
        more = f", of which the first {SHOWN} are told" if told["refused"] > SHOWN else ""
        raise click.ClickException(f"{told['refused']:,} rows were refused{more}")


def _config_of(config_path: Path | None, app: str) -> Config:
    config, _ = read_config(config_path)
    if app not in config.apps:
        raise click.BadParameter(f"the configuration has only {', '.join(config.apps)}", param_hint="--app")
    return config


def _form_of(file: Path) -> str:
    from waypost.bootstrap.device_rows import FORMATS

    if file.suffix.lower() not in FORMATS:
        raise click.BadParameter(f"ends with none of {', '.join(FORMATS)}: give --format", param_hint="FILE")
    return FORMATS[file.suffix.lower()]


def _created(file: Path) -> TextIO:
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as refused:
        raise click.BadParameter(f"cannot be made: {refused.strerror}", param_hint="FILE") from None
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")


def _opened(file: Path) -> TextIO:
    try:
        return file.open(encoding="utf-8-sig", errors="replace", newline="")
    except OSError as unreadable:
        raise click.BadParameter(f"cannot be read: {unreadable.strerror}", param_hint="FILE") from None


async def _export(config: Config, app: str, out: TextIO, form: str) -> int:
    from waypost.bootstrap.device_rows import write_rows
    from waypost.bootstrap.device_transfer import export_devices

    count = 0
    write_rows((), out, form, first=True)
    with progress() as bar:
        task = bar.add_task("devices", total=None)
        async for page in export_devices(config, app):
            write_rows(page, out, form, first=False)
            count += len(page)
            bar.update(task, completed=count)
    return count


async def _import(
    config: Config, app: str, file: TextIO, form: str, platform: str | None, is_trial: bool, refused: list[RefusedRow]
) -> dict[str, Any]:
    import msgspec

    from waypost.bootstrap.device_rows import read_rows
    from waypost.bootstrap.device_transfer import import_devices

    def refuse(row: RefusedRow) -> None:
        if len(refused) < SHOWN:
            refused.append(row)

    with progress() as bar:
        task = bar.add_task("rows", total=None)
        rows = read_rows(file, form, platform)
        found = await import_devices(
            config, app, rows, refuse, lambda done: bar.update(task, completed=done), is_trial=is_trial
        )
    told: dict[str, Any] = msgspec.structs.asdict(found)
    return told
