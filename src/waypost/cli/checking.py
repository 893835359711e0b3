"""``waypost check-config``: whether a worker could start with this configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, plain, print_json

if TYPE_CHECKING:
    from waypost.bootstrap.reach import Reached
    from waypost.config import Config
    from waypost.domain.limits import Rate


class ConfigFindings(Struct, frozen=True):
    """The settings a worker would start with; *problems* say why it could not."""

    config: str | None
    listen: str
    workers: int
    store: str
    log: str | None
    lacks: dict[str, str]
    http2: str
    reached: list[Reached]
    limits: dict[str, str]
    fallbacks: dict[str, list[str]]
    credentials: dict[str, str | None]
    ends: dict[str, str]
    problems: list[str]


@click.command("check-config", short_help="Check the configuration.")
@config_option
@click.option("--settings", "show_settings", is_flag=True, help="Print the reference of all settings.")
@click.option("--connect", is_flag=True, help="Also connect to the servers that it names, and report their versions.")
@as_json_option
def check_config(config_path: Path | None, show_settings: bool, connect: bool, as_json: bool) -> None:
    """Read the configuration as a worker does, check every credential, and look at the store and the log as it would.

    Nothing is sent, and nothing is written or migrated; the log stack's missing topics alone are made.


    \b
    Examples:
      waypost check-config --config waypost.yaml
      waypost check-config --settings
      waypost check-config --connect
    """
    if show_settings:
        from waypost.bootstrap.features import sections
        from waypost.bootstrap.registry import installed
        from waypost.config.reference import markdown

        click.echo(markdown(installed(), sections()))
        return
    config, path = read_config(config_path)
    found = _look(config, path, connects=connect)
    if as_json:
        _print_for_programs(found)
    else:
        _print_for_people(found)
    if found.problems:
        raise click.ClickException("; ".join(found.problems))


def _look(config: Config, path: Path | None, *, connects: bool) -> ConfigFindings:
    from waypost.bootstrap.credentials import ends_of
    from waypost.bootstrap.fallbacks import stand_ins
    from waypost.bootstrap.intake import server_tls
    from waypost.bootstrap.promises import lacks_of
    from waypost.bootstrap.senders import http2_kernel
    from waypost.domain.time import isoformat
    from waypost.runtime.clock import SystemClock

    kernel, now = http2_kernel(), isoformat(SystemClock().now())
    tls, limits = server_tls(config), explained(config)
    ends = {name: isoformat(ends_at) for name, ends_at in ends_of(config, tls).items()}
    engine, log, credentials = asyncio.run(_try(config))
    credentials |= dict.fromkeys(tls)
    reached = asyncio.run(_reach(config)) if connects else []
    problems = [problem for problem in credentials.values() if problem is not None]
    problems += [server.problem for server in reached if server.problem is not None]
    problems += [f"{name} ended on {ends_on[:10]}" for name, ends_on in ends.items() if ends_on <= now]
    return ConfigFindings(
        config=None if path is None else str(path),
        listen=str(config.listen),
        workers=config.workers,
        store=engine,
        log=log,
        lacks={str(promise): instead for promise, instead in lacks_of(config.stack).items()},
        http2=kernel,
        reached=reached,
        limits=limits,
        fallbacks=stand_ins(config),
        credentials=credentials,
        ends=ends,
        problems=problems,
    )


def _print_for_programs(found: ConfigFindings) -> None:
    log = {} if found.log is None else {"log": found.log}
    print_json(
        {
            "config": found.config,
            "listen": found.listen,
            "store": found.store,
            "http2": found.http2,
            **{server.name: server.what for server in found.reached},
            **log,
            "lacks": found.lacks,
            "workers": found.workers,
            "limits": found.limits,
            "fallbacks": found.fallbacks,
            "credentials": found.credentials,
            "ends": found.ends,
            "ok": not found.problems,
        }
    )


def _print_for_people(found: ConfigFindings) -> None:
    out = console()
    out.print(f"configuration  {plain(found.config or 'the environment')}")
    out.print(f"listen         {found.listen}, {found.workers} workers")
    out.print(f"store          {found.store}, can be opened")
    if found.log is not None:
        out.print(f"log            {found.log}")
    for promise, instead in found.lacks.items():
        out.print(f"lacks          {promise}: {plain(instead)}")
    for server in found.reached:
        out.print(f"{server.name:<14} {plain(server.what)}")
    out.print(f"http2          {found.http2}")
    for name, limit in found.limits.items():
        out.print(f"limit          {plain(name)}: {limit}")
    for name, others in found.fallbacks.items():
        out.print(f"{name:<14} falls back to {', '.join(others)}")
    for name, problem in found.credentials.items():
        ends_on = f", ends on {found.ends[name][:10]}" if name in found.ends else ""
        out.print(f"{name:<14} {'ok' if problem is None else '[red]cannot be used[/]'}{ends_on}")


def explained(config: Config) -> dict[str, str]:
    """List every limit that holds, by what it is of; ConfigurationError names an unknown route or proxy."""
    from waypost.bootstrap.limits import bounds_of, counted_in, rates_of

    bounds_of(config)
    chosen = config.limits
    found = {"counted in": counted_in(config)}
    found |= {name: str(getattr(chosen, name)) for name in ("caller", "user", "address", "failures")}
    found |= {name: str(quota) for name, quota in chosen.endpoints.items()}
    for app, each in config.apps.items():
        if each.limits.all.limit:
            found[app] = str(each.limits.all)
        found |= {f"{app}/{name}": str(quota) for name, quota in each.limits.callers.items()}
    return found | {str(name): _said(rate) for name, rate in rates_of(config).items()}


def _said(rate: Rate) -> str:
    from waypost.domain.time import SECOND_MS

    parts = ["unlimited"]
    if rate.bucket is not None:
        parts = [f"{rate.bucket.size:,} at once, {rate.bucket.refill_per_s:,g} a second"]
        parts += [f"over a ramp of {rate.bucket.ramp_s:g} s"] if rate.bucket.ramp_s else []
    if rate.per_device is not None:
        parts.append(f"to one device {rate.per_device.limit} in {rate.per_device.window_ms // SECOND_MS} s")
    return ", ".join(parts)


async def _reach(config: Config) -> list[Reached]:
    from waypost.bootstrap.reach import reach

    return await reach(config)


async def _try(config: Config) -> tuple[str, str | None, dict[str, str | None]]:
    from waypost.bootstrap.opening import look
    from waypost.bootstrap.senders import try_credentials
    from waypost.bootstrap.stacks import check_log

    engine = await asyncio.to_thread(look, config)
    return engine, check_log(config), {str(name): problem for name, problem in (await try_credentials(config)).items()}
