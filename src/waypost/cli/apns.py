"""``waypost apns channels``: Apple's broadcast channels, to which a live activity can be sent for all who follow it."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, print_json


@click.group(short_help="Manage Apple's broadcast channels.")
def apns() -> None:
    """Manage features that only Apple has. Reads the configuration and speaks to Apple directly; Waypost may be
    running.

    \b
    Examples:
      waypost apns channels list --app demo
    """


@apns.group()
def channels() -> None:
    """Broadcast channels: one push updates a live activity for everybody who follows it (iOS 18).

    \b
    Examples:
      waypost apns channels create --app demo --stored
      waypost apns channels list --app demo
      waypost apns channels send CHANNEL --app demo --aps '{"event": "update", "content-state": {"score": "1:0"}}'
    """


def _channel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give *command* a ``do``, which does something with the app's channels and waits for it."""

    @click.option("--app", required=True, help="The app, as the configuration names it.")
    @config_option
    @functools.wraps(command)
    def with_channels(app: str, config_path: Path | None, **given: Any) -> Any:
        return command(do=functools.partial(_do, app, config_path), **given)

    return with_channels


def _do(app: str, config_path: Path | None, act: Callable[[Any], Awaitable[Any]]) -> Any:
    from waypost.bootstrap.channels import apns_channels
    from waypost.domain.errors import ConfigurationError, WaypostError
    from waypost.domain.ids import AppId

    config, _ = read_config(config_path)
    if app not in config.apps:
        raise click.BadParameter(f"the configuration has only {', '.join(config.apps)}", param_hint="--app")

    async def acted() -> Any:
        async with apns_channels(config, AppId(app)) as opened:
            return await act(opened)

    try:
        return asyncio.run(acted())
    except ConfigurationError:
        raise
    except WaypostError as refused:
        raise click.ClickException(str(refused)) from None


@channels.command()
@click.option("--stored", is_flag=True, help="Keep the last message for devices that are away, at most 8 hours.")
@_channel_options
@as_json_option
def create(do: Callable[..., Any], as_json: bool, stored: bool) -> None:
    """Make a channel and show its id."""
    made = do(lambda opened: opened.create(stored=stored))
    if as_json:
        print_json({"channel": made, "stored": stored})
    else:
        click.echo(made)


@channels.command("list")
@_channel_options
@as_json_option
def list_(do: Callable[..., Any], as_json: bool) -> None:
    """List the ids of all channels of the app, one a line."""
    found = do(lambda opened: opened.ids())
    if as_json:
        print_json({"channels": found})
    else:
        click.echo("\n".join(found) if found else "no channels")


@channels.command()
@click.argument("channel")
@_channel_options
@as_json_option
def show(do: Callable[..., Any], as_json: bool, channel: str) -> None:
    """Say what a channel stores."""
    found = do(lambda opened: opened.read(channel))
    if as_json:
        print_json({"channel": channel, "stored": bool(found.storage)})
    else:
        click.echo("stores the last message" if found.storage else "stores nothing")


@channels.command()
@click.argument("channel")
@_channel_options
def delete(do: Callable[..., Any], channel: str) -> None:
    """End a channel, for good."""
    do(lambda opened: opened.delete(channel))
    click.echo("deleted")


@channels.command()
@click.argument("channel")
@click.option("--aps", required=True, help="The aps object as JSON: event (update or end) and content-state.")
@click.option("--ttl", default=0, show_default=True, help="Seconds it is stored; a channel without storage takes 0.")
@click.option("--priority", type=click.Choice(["1", "5", "10"]), default="10", show_default=True)
@_channel_options
def send(do: Callable[..., Any], channel: str, aps: str, ttl: int, priority: Literal["1", "5", "10"]) -> None:
    """Tell all who follow a channel, and show Apple's id of the request."""
    try:
        said = json.loads(aps)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise click.BadParameter("must be a JSON object", param_hint="--aps")
    click.echo(do(lambda opened: opened.send(channel, said, expires_in_s=ttl, priority=priority)))
