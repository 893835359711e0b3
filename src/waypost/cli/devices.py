"""``waypost devices``: who has which device."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from waypost.cli.composing import line_for_dash
from waypost.cli.connect import api_options, config_option, read_config
from waypost.cli.device_files import export, import_
from waypost.cli.printing import as_json_option, console, plain, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client
    from waypost.config import Config


@click.group(short_help="List, add, remove, export and import devices; warm their cache.")
def devices() -> None:
    """List, add and remove a user's devices; export and import an app's; warm the cache of many users' devices ahead
    of a campaign.

    \b
    Examples:
      waypost devices list alice
      echo "$TOKEN" | waypost devices add alice phone --platform ios --token -
      waypost devices remove alice phone
      waypost devices export devices.jsonl --app demo
      waypost devices import devices.csv --app demo --dry-run
      waypost devices warm --app demo --file users.txt
    """


devices.add_command(export)
devices.add_command(import_)


@devices.command("list")
@click.argument("user_id")
@click.option("--inactive", is_flag=True, help="Also those that get nothing any more.")
@api_options
@as_json_option
def list_(client: Client, user_id: str, inactive: bool, as_json: bool) -> None:
    """List the devices of USER_ID.

    \b
    Example:
      waypost devices list alice --inactive
    """
    answer = client.devices(user_id, inactive=inactive)
    if as_json:
        print_json(answer)
        return
    columns = ("device", "platform", "active", "last seen", "last used", "token hash")
    rows = [
        (
            each["device_id"],
            each["platform"],
            "yes" if each["active"] else "no",
            short_time(each["last_seen_at"]),
            short_time(each["last_used_at"]),
            each["token_hash"],
        )
        for each in answer["items"]
    ]
    console().print(table(columns, rows) if rows else f"{plain(user_id)} has no device")


@devices.command()
@click.argument("user_id")
@click.argument("device_id")
@click.option(
    "--platform",
    required=True,
    help="android, ios, web, ios_fcm, web_fcm, phone, email, url, or what a plug-in serves.",
)
@click.option(
    "--token",
    required=True,
    callback=line_for_dash,
    help="The provider's token; for web the endpoint of the subscription; `-` reads a line of stdin.",
)
@click.option("--p256dh", help="For web: the subscription's public key (base64url).")
@click.option(
    "--auth",
    callback=line_for_dash,
    help="For web: the subscription's secret (base64url); `-` reads a line of stdin.",
)
@click.option("--app-version")
@click.option("--os-version")
@click.option("--locale", help="Such as de-CH.")
@api_options
@as_json_option
def add(
    client: Client,
    user_id: str,
    device_id: str,
    as_json: bool,
    p256dh: str | None,
    auth: str | None,
    **fields: str | None,
) -> None:
    """Register DEVICE_ID of USER_ID, or refresh it.

    \b
    Examples:
      echo "$TOKEN" | waypost devices add alice phone --platform android --token -
      waypost devices add alice laptop --platform web --token - --p256dh BN… --auth - < endpoint-and-secret.txt
    """
    device: Any = {name: value for name, value in fields.items() if value is not None}
    if p256dh or auth:
        device["keys"] = {"p256dh": p256dh or "", "auth": auth or ""}
    answer = client.add_device(user_id, device_id, device)
    if as_json:
        print_json(answer)
        return
    console().print(f"{plain(device_id)} {'added' if answer['created'] else 'refreshed'}")
    for pushed_out in answer["pushed_out"]:
        console().print(f"{plain(pushed_out)} deactivated: the cap of devices is reached")


@devices.command()
@click.argument("user_id")
@click.argument("device_id")
@api_options
@as_json_option
def remove(client: Client, user_id: str, device_id: str, as_json: bool) -> None:
    """Send nothing more to DEVICE_ID of USER_ID.

    \b
    Example:
      waypost devices remove alice phone
    """
    client.remove_device(user_id, device_id)
    if as_json:
        print_json({"removed": device_id})
    else:
        console().print(f"{plain(device_id)} removed")


@devices.command()
@config_option
@click.option("--app", required=True, help="Whose users they are.")
@click.option(
    "--file", "users", required=True, type=click.File(encoding="utf-8"), help="One user id a line; - is stdin."
)
@as_json_option
def warm(config_path: Path | None, app: str, users: TextIO, as_json: bool) -> None:
    """Load the devices of many users into the cache, so that a campaign finds them there.

    Opens the store itself, also while Waypost runs. They stay for the whole time that `redis.devices_ttl_s` says.

    \b
    Example:
      waypost devices warm --app demo --file users.txt
    """
    config, _ = read_config(config_path)
    if app not in config.apps:
        raise click.BadParameter(f"there is no app {app}", param_hint="--app")
    seen, found = asyncio.run(_warm(config, app, (stripped for line in users if (stripped := line.strip()))))
    if as_json:
        print_json({"users": seen, "devices": found})
    else:
        console().print(f"{seen:,} users with {found:,} devices are cached")


async def _warm(config: Config, app: str, users: Iterable[str]) -> tuple[int, int]:
    from waypost.bootstrap.admin import open_admin_store
    from waypost.bootstrap.shared import warm_devices

    async with open_admin_store(config) as store:
        return await warm_devices(store.devices, config, app, users)
