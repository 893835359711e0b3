"""``waypost check-config``: whether a worker could start with this configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from waypost.cli.doors import config_option, read_config
from waypost.cli.printing import as_json_option, console, plain, print_json

if TYPE_CHECKING:
    from waypost.bootstrap.reach import Reached
    from waypost.config import Config


@click.command("check-config", short_help="Say whether the configuration can be used.")
@config_option
@click.option("--settings", "show_settings", is_flag=True, help="Print every setting, as the reference has them.")
@click.option("--connect", is_flag=True, help="Also connect to the servers it names, and say what runs there.")
@as_json_option
def check_config(config_path: Path | None, show_settings: bool, connect: bool, as_json: bool) -> None:
    """Read the configuration as a worker does, try every credential, open the store and see the log; nothing is sent.

    \b
    Examples:
      waypost check-config --config waypost.yaml
      waypost check-config --settings
      waypost check-config --connect
    """
    if show_settings:
        from waypost.bootstrap.registry import installed
        from waypost.config.reference import markdown

        click.echo(markdown(installed()))
        return
    config, path = read_config(config_path)
    from waypost.bootstrap.credentials import ends_of
    from waypost.bootstrap.doors import server_tls
    from waypost.bootstrap.limits import explained
    from waypost.bootstrap.senders import http2_kernel
    from waypost.domain.time import isoformat
    from waypost.runtime.clock import SystemClock

    kernel, now = http2_kernel(), isoformat(SystemClock().now())
    doors, limits = server_tls(config), explained(config)
    ends = {name: isoformat(ends_at) for name, ends_at in ends_of(config, doors).items()}
    engine, log, credentials = asyncio.run(_try(config))
    credentials |= dict.fromkeys(doors)
    reached = asyncio.run(_reach(config)) if connect else []
    problems = [problem for problem in credentials.values() if problem is not None]
    problems += [server.problem for server in reached if server.problem is not None]
    problems += [f"{name} ended on {ends_on[:10]}" for name, ends_on in ends.items() if ends_on <= now]
    if as_json:
        found = {"config": None if path is None else str(path), "listen": str(config.listen), "store": engine}
        found |= {"http2": kernel} | {server.name: server.what for server in reached}
        if log is not None:
            found["log"] = log
        print_json(
            {
                **found,
                "workers": config.workers,
                "limits": limits,
                "credentials": credentials,
                "ends": ends,
                "ok": not problems,
            }
        )
    else:
        out = console()
        out.print(f"configuration  {plain(str(path or 'the environment'))}")
        out.print(f"listen         {config.listen}, {config.workers} workers")
        out.print(f"store          {engine}, opened")
        if log is not None:
            out.print(f"log            {log}")
        for server in reached:
            out.print(f"{server.name:<14} {plain(server.what)}")
        out.print(f"http2          {kernel}")
        for name, limit in limits.items():
            out.print(f"limit          {plain(name)}: {limit}")
        for name, problem in credentials.items():
            ends_on = f", ends on {ends[name][:10]}" if name in ends else ""
            out.print(f"{name:<14} {'ok' if problem is None else '[red]cannot be used[/]'}{ends_on}")
    if problems:
        raise click.ClickException("; ".join(problems))


async def _reach(config: Config) -> list[Reached]:
    from waypost.bootstrap.reach import reach

    return await reach(config)


async def _try(config: Config) -> tuple[str, str | None, dict[str, str | None]]:
    from waypost.bootstrap.admin import open_admin_store, store_engine
    from waypost.bootstrap.senders import try_credentials
    from waypost.bootstrap.stacks import check_log

    engine = store_engine(config)
    async with open_admin_store(config) as store:
        await store.keys.all()
    return engine, check_log(config), {str(name): problem for name, problem in (await try_credentials(config)).items()}
