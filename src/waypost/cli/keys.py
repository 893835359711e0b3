"""``waypost keys``: who may call."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from waypost.cli.doors import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.config import Config
    from waypost.domain.time import Instant
    from waypost.ports.keys import ApiKey


@click.group(short_help="Create, list and revoke API keys.")
def keys() -> None:
    """Create, list and revoke API keys. Opens the store itself, also while Waypost runs.

    \b
    Examples:
      waypost keys create --app demo --caller shop-backend
      waypost keys list
      waypost keys revoke wp_4k2h7x3a
    """


@keys.command()
@click.option("--app", required=True, help="The app it is for, as the configuration names it.")
@click.option("--caller", required=True, help="Who will use it; the name stays when the key is replaced.")
@config_option
@as_json_option
def create(app: str, caller: str, config_path: Path | None, as_json: bool) -> None:
    """Make a key and show it, this once.

    \b
    Examples:
      waypost keys create --app demo --caller shop-backend
      export WAYPOST_API_KEY=$(waypost keys create --app demo --caller me)
    """
    config, _ = read_config(config_path)
    if app not in config.apps:
        raise click.BadParameter(f"the configuration has only {', '.join(config.apps)}", param_hint="--app")
    if not 1 <= len(caller) <= 128 or not caller.isprintable():
        raise click.BadParameter("1 to 128 printable characters", param_hint="--caller")
    text, stored = asyncio.run(make_key(config, app, caller))
    if as_json:
        print_json({"key": text, "prefix": stored.prefix, "app": app, "caller": caller})
    else:
        click.echo(text)
        click.echo(f"A key of {caller} for {app}. It is not shown again.", err=True)


async def make_key(config: Config, app: str, caller: str) -> tuple[str, ApiKey]:
    """Make and store a key: its text, which is known here alone, and what was stored."""
    from waypost.bootstrap.admin import open_admin_store
    from waypost.domain import api_key
    from waypost.domain.ids import AppId, CallerId
    from waypost.ports.keys import ApiKey

    made = api_key.make(secrets.token_bytes(api_key.RANDOM_BYTES))
    stored = ApiKey(made.prefix, made.secret_hash, AppId(app), CallerId(caller), _now())
    async with open_admin_store(config) as store:
        await store.keys.add(stored)
    return made.text, stored


@keys.command("list")
@click.option("--app", help="Only this app's.")
@config_option
@as_json_option
def list_(app: str | None, config_path: Path | None, as_json: bool) -> None:
    """List the keys, without their secrets.

    \b
    Example:
      waypost keys list --app demo --json
    """
    from waypost.domain.time import isoformat

    config, _ = read_config(config_path)
    found = asyncio.run(_list(config, app))
    rows = [
        {
            "prefix": key.prefix,
            "app": key.app,
            "caller": key.caller,
            "created_at": isoformat(key.created_at),
            "revoked_at": None if key.revoked_at is None else isoformat(key.revoked_at),
        }
        for key in found
    ]
    if as_json:
        print_json({"items": rows})
        return
    shown = [
        (each["prefix"], each["app"], each["caller"], short_time(each["created_at"]), short_time(each["revoked_at"]))
        for each in rows
    ]
    console().print(table(("key", "app", "caller", "created", "revoked"), shown) if shown else "no keys")


async def _list(config: Config, app: str | None) -> list[ApiKey]:
    from waypost.bootstrap.admin import open_admin_store
    from waypost.domain.ids import AppId

    async with open_admin_store(config) as store:
        return await store.keys.all(None if app is None else AppId(app))


@keys.command()
@click.argument("prefix")
@config_option
@as_json_option
def revoke(prefix: str, config_path: Path | None, as_json: bool) -> None:
    """Refuse the key that begins with PREFIX from now on.

    \b
    Example:
      waypost keys revoke wp_4k2h7x3a
    """
    config, _ = read_config(config_path)
    if not asyncio.run(_revoke(config, prefix)):
        raise click.ClickException(f"no live key begins with {prefix[:11]}")
    if as_json:
        print_json({"revoked": prefix})
    else:
        console().print(f"{prefix} revoked; running workers refuse it within seconds")


async def _revoke(config: Config, prefix: str) -> bool:
    from waypost.bootstrap.admin import open_admin_store

    async with open_admin_store(config) as store:
        return await store.keys.revoke(prefix, _now())


def _now() -> Instant:
    from waypost.runtime.clock import SystemClock

    return SystemClock().now()
