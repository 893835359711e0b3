"""``waypost fcm topics``: who hears which topic of FCM; a notification ``to`` one goes through the API."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import click

from waypost.cli.composing import line_for_dash
from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json, table


def _lines_for_dash(_context: click.Context, _argument: click.Parameter, said: tuple[str, ...]) -> tuple[str, ...]:
    """Read a device from each line of stdin for `-`: what stands in the arguments, everybody on the machine can see."""
    if said != ("-",):
        return said
    lines = tuple([stripped for line in sys.stdin if (stripped := line.strip())])
    if not lines:
        raise click.BadParameter("stdin names no device")
    return lines


devices_argument = click.argument("devices", nargs=-1, required=True, callback=_lines_for_dash)
app_option = click.option("--app", required=True, help="The app, as the configuration names it.")


@click.group(short_help="Manage the topics of FCM.")
def fcm() -> None:
    """Manage features that only Google has. Reads the configuration and speaks to Google directly; Waypost may be
    running.

    \b
    Examples:
      waypost fcm topics subscribe news - --app demo < tokens.txt
      echo "$TOKEN" | waypost fcm topics list - --app demo
    """


@fcm.group()
def topics() -> None:
    """Manage the members of a topic; a device is named by its registration token, or by fid: and its installation id.
    `-` reads them from stdin, one a line: what stands in the arguments, everybody on the machine can see.

    \b
    Examples:
      waypost fcm topics subscribe news - --app demo < tokens.txt
      waypost fcm topics unsubscribe news fid:cXyz --app demo
      echo "$TOKEN" | waypost fcm topics list - --app demo
    """


@topics.command()
@click.argument("topic")
@devices_argument
@app_option
@config_option
@as_json_option
def subscribe(topic: str, devices: tuple[str, ...], app: str, config_path: Path | None, as_json: bool) -> None:
    """Let each device hear TOPIC; 1 if one of them does not."""
    _change(app, config_path, devices, lambda opened, device: opened.subscribe(device, topic), as_json=as_json)


@topics.command()
@click.argument("topic")
@devices_argument
@app_option
@config_option
@as_json_option
def unsubscribe(topic: str, devices: tuple[str, ...], app: str, config_path: Path | None, as_json: bool) -> None:
    """Let no device of these hear TOPIC; 1 if one of them may still."""
    _change(app, config_path, devices, lambda opened, device: opened.unsubscribe(device, topic), as_json=as_json)


@topics.command("list")
@click.argument("device", callback=line_for_dash)
@app_option
@config_option
@as_json_option
def list_(device: str, app: str, config_path: Path | None, as_json: bool) -> None:
    """List what a device hears, one topic a line."""
    found = _do(app, config_path, lambda opened: opened.topics_of(device))
    if not isinstance(found, list):
        raise click.ClickException(f"{found.code}: {found.why}")
    if as_json:
        print_json({"topics": found})
    else:
        click.echo("\n".join(found) if found else "no topics")


def _change(
    app: str,
    config_path: Path | None,
    devices: Sequence[str],
    act: Callable[[Any, str], Awaitable[Any]],
    *,
    as_json: bool,
) -> None:
    async def each(opened: Any) -> list[Any]:
        return [await act(opened, device) for device in devices]

    results = _do(app, config_path, each)
    faults = [
        (device, getattr(result, "code", ""), getattr(result, "why", ""))
        for device, result in zip(devices, results, strict=True)
    ]
    failed = [fault for fault in faults if fault[1]]
    if as_json:
        print_json({"results": [{"device": device, "code": code, "why": why} for device, code, why in faults]})
    else:
        click.echo(f"{len(devices) - len(failed)} of {len(devices)} done")
        if failed:
            console().print(table(("device", "code", "why"), failed))
    if failed:
        raise click.exceptions.Exit(1)


def _do(app: str, config_path: Path | None, act: Callable[[Any], Awaitable[Any]]) -> Any:
    from waypost.bootstrap.channels import fcm_topics
    from waypost.domain.ids import AppId

    config, _ = read_config(config_path)
    if app not in config.apps:
        raise click.BadParameter(f"the configuration has only {', '.join(config.apps)}", param_hint="--app")

    async def acted() -> Any:
        async with fcm_topics(config, AppId(app)) as opened:
            return await act(opened)

    return asyncio.run(acted())
