"""``waypost fcm``: the topics and device groups of FCM; a notification ``to`` one goes through the API."""

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


@click.group(short_help="Manage the topics and device groups of FCM.")
def fcm() -> None:
    """Manage features that only Google has. Reads the configuration and speaks to Google directly; Waypost may be
    running.

    \b
    Examples:
      waypost fcm topics subscribe news - --app demo < tokens.txt
      echo "$TOKEN" | waypost fcm topics list - --app demo
      waypost fcm groups create fleet-7 - --sender-id 123456789012 --app demo < tokens.txt
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
    found = _do(app, config_path, lambda opened: opened.topics_of(device), _topics)
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

    results = _do(app, config_path, each, _topics)
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


@fcm.group()
def groups() -> None:
    """Manage device groups, of 20 devices at most: a notification `to` a group's token is one message.

    \b
    Examples:
      waypost fcm groups create fleet-7 - --sender-id 123456789012 --app demo < tokens.txt
      waypost fcm groups add fleet-7 - --sender-id 123456789012 --app demo < more.txt
      waypost fcm groups show fleet-7 --sender-id 123456789012 --app demo
    """


sender_option = click.option("--sender-id", required=True, help="The project's number, from the Firebase console.")


@groups.command()
@click.argument("name")
@devices_argument
@sender_option
@app_option
@config_option
@as_json_option
def create(
    name: str, devices: tuple[str, ...], sender_id: str, app: str, config_path: Path | None, as_json: bool
) -> None:
    """Make the group NAME of these tokens and print its token."""
    _print_group(_do(app, config_path, lambda opened: opened.create(name, devices), _groups(sender_id)), as_json)


@groups.command()
@click.argument("name")
@devices_argument
@sender_option
@app_option
@config_option
@as_json_option
def add(name: str, devices: tuple[str, ...], sender_id: str, app: str, config_path: Path | None, as_json: bool) -> None:
    """Add these tokens to the group NAME and print its token."""
    _print_group(_do(app, config_path, _changing(name, devices, "add"), _groups(sender_id)), as_json)


@groups.command()
@click.argument("name")
@devices_argument
@sender_option
@app_option
@config_option
@as_json_option
def remove(
    name: str, devices: tuple[str, ...], sender_id: str, app: str, config_path: Path | None, as_json: bool
) -> None:
    """Take these tokens out of the group NAME; it ends with its last."""
    _print_group(_do(app, config_path, _changing(name, devices, "remove"), _groups(sender_id)), as_json)


@groups.command()
@click.argument("name")
@sender_option
@app_option
@config_option
@as_json_option
def show(name: str, sender_id: str, app: str, config_path: Path | None, as_json: bool) -> None:
    """Print the token of the group NAME."""
    _print_group(_do(app, config_path, lambda opened: opened.find(name), _groups(sender_id)), as_json)


def _changing(name: str, devices: Sequence[str], verb: str) -> Callable[[Any], Awaitable[Any]]:
    async def change(opened: Any) -> Any:
        group = await opened.find(name)
        token = getattr(group, "token", "")
        return await getattr(opened, verb)(name, token, devices) if token else group

    return change


def _print_group(group: Any, as_json: bool) -> None:
    token = getattr(group, "token", "")
    if not token:
        raise click.ClickException(f"{group.code}: {group.why}")
    if as_json:
        print_json({"token": token})
    else:
        click.echo(token)


def _groups(sender_id: str) -> Callable[[Any, Any], Any]:
    from waypost.bootstrap.channels import fcm_groups

    return lambda config, app: fcm_groups(config, app, sender_id)


def _topics(config: Any, app: Any) -> Any:
    from waypost.bootstrap.channels import fcm_topics

    return fcm_topics(config, app)


def _do(
    app: str,
    config_path: Path | None,
    act: Callable[[Any], Awaitable[Any]],
    open_: Callable[[Any, Any], Any],
) -> Any:
    from waypost.domain.ids import AppId

    config, _ = read_config(config_path)
    if app not in config.apps:
        raise click.BadParameter(f"the configuration has only {', '.join(config.apps)}", param_hint="--app")

    async def acted() -> Any:
        async with open_(config, AppId(app)) as opened:
            return await act(opened)

    return asyncio.run(acted())
