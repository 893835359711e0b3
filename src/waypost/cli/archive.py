"""``waypost archive``: the files in which old notifications are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, plain, print_json, table

if TYPE_CHECKING:
    from waypost.client import NotificationView

T = TypeVar("T")


@click.group(short_help="List, show, verify and restore what was archived, and give up what is lost.")
def archive() -> None:
    """Look into the archive. Opens the store and the archive itself, also while Waypost runs.

    \b
    Examples:
      waypost archive list --app demo
      waypost archive show 019c1234-5678-7abc-8def-0123456789ab
      waypost archive verify
    """


@archive.command("list")
@click.option("--app", help="Only the files of this app.")
@config_option
@as_json_option
def list_them(app: str | None, config_path: Path | None, as_json: bool) -> None:
    """List the files that the store knows, oldest first.

    \b
    Examples:
      waypost archive list
      waypost archive list --app demo --json
    """
    import msgspec

    from waypost.bootstrap.archive import list_files

    config, _ = read_config(config_path)
    found: list[dict[str, Any]] = msgspec.to_builtins(asyncio.run(list_files(config, app)))
    if as_json:
        print_json({"files": found})
        return
    rows = [(plain(each["path"]), f"{each['rows']:,}", f"{each['bytes']:,}", each["written_at"]) for each in found]
    console().print(table(("file", "rows", "bytes", "written"), rows) if rows else "nothing is archived")


@archive.command()
@click.argument("notification_id")
@config_option
@as_json_option
def show(notification_id: str, config_path: Path | None, as_json: bool) -> None:
    """Draw the journey of NOTIFICATION_ID, as `waypost show` does of what is in the store.

    \b
    Example:
      waypost archive show 019c1234-5678-7abc-8def-0123456789ab
    """
    from waypost.bootstrap.archive import show as find
    from waypost.cli.journey import draw
    from waypost.domain.ids import parse_id

    config, _ = read_config(config_path)
    try:
        wanted = parse_id(notification_id)
    except ValueError:
        raise click.BadParameter("is no id of a notification", param_hint="NOTIFICATION_ID") from None
    detail = asyncio.run(find(config, wanted))
    print_json(detail) if as_json else draw(cast("NotificationView", detail))


@archive.command()
@config_option
@as_json_option
def verify(config_path: Path | None, as_json: bool) -> None:
    """Read every file and compare it with what was written; 1 is the exit code where something is wrong.

    A file is `away`, `changed`, or `unknown`: `waypost archive restore` makes it known. One that is away or changed
    is whole again once a copy of it lies in its place; where there is none, `waypost archive forget` gives it up.

    \b
    Examples:
      waypost archive verify
      waypost archive verify --json
    """
    from waypost.bootstrap.archive import verified

    config, _ = read_config(config_path)
    checked = asyncio.run(_all(verified(config)))
    wrong = [(each.path, each.fault.value) for each in checked if each.fault is not None]
    sound, rows = len(checked) - len(wrong), sum(each.rows for each in checked)
    if as_json:
        faults = [{"path": path, "fault": fault} for path, fault in wrong]
        print_json({"files": sound, "notifications": rows, "faults": faults})
    else:
        for path, fault in wrong:
            console().print(f"[red]{fault}[/]  {plain(path)}")
        console().print(f"{sound:,} files are sound, with {rows:,} notifications")
    if wrong:
        raise SystemExit(1)


@archive.command()
@config_option
@as_json_option
def restore(config_path: Path | None, as_json: bool) -> None:
    """Make known what lies in the archive and the store does not know, as after the store was restored from a backup.

    Rows that the store has of them leave it again, within a minute or two. Users who were erased since a file was
    written do not come back: it is written anew without them. 1 is the exit code where a file is refused.

    \b
    Examples:
      waypost archive restore
      waypost archive restore --json
    """
    from waypost.bootstrap.archive import restored

    config, _ = read_config(config_path)
    found = asyncio.run(_all(restored(config)))
    refused = [each for each in found if each.refused is not None]
    known, rows = len(found) - len(refused), sum(each.rows for each in found if each.refused is None)
    passed_over = sum(each.passed_over for each in found)
    if as_json:
        said = [{"path": each.path, "why": each.refused} for each in refused]
        print_json({"files": known, "notifications": rows, "passed_over": passed_over, "refused": said})
    else:
        for each in refused:
            console().print(f"[red]refused[/]  {plain(each.path)}: {plain(str(each.refused))}")
        console().print(f"{known:,} files are known again, with {rows:,} notifications")
        if passed_over:
            console().print(f"{passed_over:,} notifications were of users who were erased since: they stay erased")
    if refused:
        raise SystemExit(1)


@archive.command()
@click.argument("path")
@config_option
@as_json_option
def forget(path: str, config_path: Path | None, as_json: bool) -> None:
    """Give up the file PATH, which is lost or damaged and of which there is no copy.

    The store knows it no more, and what is left of it is deleted: copy it elsewhere first if you may need it. What
    the store still has of it is archived anew, and erasures that wait for it end. A file that is whole is refused.

    \b
    Examples:
      waypost archive verify
      waypost archive forget demo/2026-05-01/019de1a2-0000-7000-8000-000000000000.1f2e3d4c.parquet
    """
    import msgspec

    from waypost.bootstrap.archive import give_up

    config, _ = read_config(config_path)
    gone = asyncio.run(give_up(config, path))
    if as_json:
        print_json(msgspec.to_builtins(gone))
        return
    console().print(f"{plain(gone.path)} is given up, with {gone.rows:,} notifications that it had")


async def _all(items: AsyncIterator[T]) -> list[T]:
    return [each async for each in items]
