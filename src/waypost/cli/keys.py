"""``waypost keys``: who may call."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json, short_time, table
from waypost.domain.scope import Scope

if TYPE_CHECKING:
    from waypost.config import Config
    from waypost.domain.time import Instant
    from waypost.ports.keys import ApiKey

SCOPES = tuple(scope.value for scope in Scope)

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def _seconds(_context: click.Context, _option: click.Parameter, span: str | None) -> int | None:
    """Parse a span of time as people write it: ``90d``, ``24h``, ``30m``, ``45s``."""
    if span is None:
        return None
    found = re.fullmatch(r"(\d{1,6})([smhd])", span)
    if found is None:
        raise click.BadParameter("a number and s, m, h or d, such as 24h")
    return int(found[1]) * _UNITS[found[2]]


@click.group(short_help="Create, rotate, list and revoke API keys.")
def keys() -> None:
    """Create, rotate, list and revoke API keys. Opens the store itself, also while Waypost runs.

    \b
    Examples:
      waypost keys create --app demo --caller shop-backend
      waypost keys rotate wp_4k2h7x3a --overlap 24h
      waypost keys list
      waypost keys revoke wp_4k2h7x3a
    """


@keys.command()
@click.option("--app", required=True, help="The app it is for, as the configuration names it.")
@click.option(
    "--caller",
    required=True,
    help="The name of the caller, without a colon; it stays the same when the key is rotated.",
)
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="What it may do; repeat it. [all]")
@click.option("--expires", "lifetime_s", callback=_seconds, help="When it ends, such as 90d or 12h. [never]")
@config_option
@as_json_option
def create(
    app: str,
    caller: str,
    scopes: tuple[str, ...],
    lifetime_s: int | None,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Create a key and show it once.

    \b
    Examples:
      waypost keys create --app demo --caller shop-backend --scope send:any-user --expires 90d
      export WAYPOST_API_KEY=$(waypost keys create --app demo --caller me)
    """
    config, _ = read_config(config_path)
    if app not in config.apps:
        raise click.BadParameter(f"the configuration has only {', '.join(config.apps)}", param_hint="--app")
    if not _is_name(caller):
        raise click.BadParameter("1 to 128 characters, none of them a control character", param_hint="--caller")
    text, stored = asyncio.run(make_key(config, app, caller, scopes, lifetime_s))
    _show_new(text, stored, as_json)
    if not scopes:
        click.echo(f"WARNING: it may do everything ({', '.join(SCOPES)}); --scope grants less.", err=True)
    if lifetime_s is None:
        click.echo("WARNING: it never ends; --expires 90d gives it an end.", err=True)


def _is_name(caller: str) -> bool:
    """Tell whether REST would take the name, too."""
    import msgspec

    from waypost.domain.submission import Identity

    try:
        msgspec.convert(caller, Identity)
    except msgspec.ValidationError:
        return False
    return True


async def make_key(
    config: Config, app: str, caller: str, scopes: Sequence[str] = SCOPES, lifetime_s: int | None = None
) -> tuple[str, ApiKey]:
    """Make and store a key: its text, which is known here alone, and what was stored."""
    from waypost.bootstrap.admin import open_admin_store, recording
    from waypost.domain.ids import AppId, CallerId
    from waypost.domain.time import SECOND_MS
    from waypost.pipeline.keys import make_key as make

    chosen = frozenset(map(Scope, scopes or SCOPES))
    lifetime_ms = None if lifetime_s is None else lifetime_s * SECOND_MS
    async with open_admin_store(config) as store:
        return await make(store.keys, recording(store), AppId(app), CallerId(caller), chosen, lifetime_ms, _now())


@keys.command()
@click.argument("prefix")
@click.option("--overlap", "overlap_s", callback=_seconds, default="24h", help="How long both are good. [24h]")
@config_option
@as_json_option
def rotate(prefix: str, overlap_s: int, config_path: Path | None, as_json: bool) -> None:
    """Make a key for the same caller, with the same scopes; the one that begins with PREFIX ends after the overlap.

    \b
    Example:
      waypost keys rotate wp_4k2h7x3a --overlap 24h
    """
    config, _ = read_config(config_path)
    with _told_of(prefix):
        made = asyncio.run(_rotate(config, prefix, overlap_s))
    _show_new(*made, as_json)


async def _rotate(config: Config, prefix: str, overlap_s: int) -> tuple[str, ApiKey]:
    from waypost.bootstrap.admin import open_admin_store, recording
    from waypost.domain.time import SECOND_MS
    from waypost.pipeline.keys import rotate_key

    async with open_admin_store(config) as store:
        return await rotate_key(store.keys, recording(store), prefix, overlap_s * SECOND_MS, _now())


def _show_new(text: str, stored: ApiKey, as_json: bool) -> None:
    if as_json:
        print_json({"key": text, **_row(stored)})
    else:
        click.echo(text)
        click.echo(f"A key of {stored.caller} for {stored.app}. It is not shown again.", err=True)


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
    config, _ = read_config(config_path)
    rows = [_row(key) for key in asyncio.run(_list(config, app))]
    if as_json:
        print_json({"items": rows})
        return
    shown = [
        (
            *(each[name] for name in ("prefix", "app", "caller")),
            "all" if len(each["scopes"]) == len(SCOPES) else " ".join(each["scopes"]),
            *(short_time(each[name]) for name in _TIMES),
        )
        for each in rows
    ]
    head = ("key", "app", "caller", "scopes", "created", "last used", "expires", "revoked")
    console().print(table(head, shown) if shown else "no keys")


_TIMES = ("created_at", "last_used_at", "expires_at", "revoked_at")


def _row(key: ApiKey) -> dict[str, Any]:
    """Describe a key without its secret."""
    from waypost.domain.time import isoformat

    times = {name: getattr(key, name) for name in _TIMES}
    known = {"prefix": key.prefix, "app": key.app, "caller": key.caller, "scopes": sorted(key.scopes)}
    return known | {name: None if at is None else isoformat(at) for name, at in times.items()}


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
    """Revoke the key that begins with PREFIX.

    \b
    Example:
      waypost keys revoke wp_4k2h7x3a
    """
    config, _ = read_config(config_path)
    with _told_of(prefix):
        asyncio.run(_revoke(config, prefix))
    if as_json:
        print_json({"revoked": prefix})
    else:
        console().print(f"{prefix} revoked; running workers refuse it within seconds")


async def _revoke(config: Config, prefix: str) -> None:
    from waypost.bootstrap.admin import open_admin_store, recording
    from waypost.pipeline.keys import revoke_key

    async with open_admin_store(config) as store:
        await revoke_key(store.keys, recording(store), prefix, _now())


@contextlib.contextmanager
def _told_of(prefix: str) -> Iterator[None]:
    """Say which key there is not; of what may be a whole key, no more than its beginning."""
    from waypost.domain.errors import NotFound

    try:
        yield
    except NotFound:
        raise click.ClickException(f"no live key begins with {prefix[:11]}") from None


def _now() -> Instant:
    from waypost.runtime.clock import SystemClock

    return SystemClock().now()
