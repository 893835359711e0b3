"""``waypost doctor``: everything that keeps Waypost from working, and what to do about each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, plain, print_json

if TYPE_CHECKING:
    from waypost.bootstrap.doctor.findings import Finding

_COLORS = {"ok": "green", "skipped": "dim", "warning": "yellow", "problem": "red"}


@click.command(short_help="Look at everything, and say what to do.")
@config_option
@click.option("--offline", is_flag=True, help="Do not connect to the providers.")
@click.option("--all", "show_all", is_flag=True, help="Also show what is well.")
@as_json_option
def doctor(config_path: Path | None, offline: bool, show_all: bool, as_json: bool) -> None:
    """Look at store, archive, clock, limits, configuration, credentials, servers, providers, versions and queue, and
    say of each whether it is well, what was seen, and what to do. Exits with 1 where something is a problem.

    It may run at any time, beside a service too. Nobody is sent anything; a file is written beside the store and
    taken away again, and the log stack's missing topics are made.

    \b
    Examples:
      waypost doctor --config waypost.yaml
      waypost doctor --all
      waypost doctor --offline --json
    """
    findings = _examined(config_path, offline=offline)
    problems = sum(each.state == "problem" for each in findings)
    if as_json:
        print_json({"ok": not problems, "findings": [_said(each) for each in findings]})
    else:
        _show(findings, show_all=show_all)
    if problems:
        raise SystemExit(1)


def _examined(config_path: Path | None, *, offline: bool) -> list[Finding]:
    from waypost.bootstrap.doctor.examination import examine
    from waypost.bootstrap.doctor.findings import problem
    from waypost.bootstrap.doctor.machine import look_at_machine
    from waypost.bootstrap.doctor.versions import look_at_versions
    from waypost.domain.errors import ConfigurationError

    try:
        config, path = read_config(config_path)
    except (ConfigurationError, OSError) as wrong:
        do = "mend it (docs/configuration.md); store, credentials and providers could not be looked at"
        return [*look_at_versions(None), *look_at_machine(None), problem("configuration", "file", str(wrong), do)]

    async def all_of_it() -> list[Finding]:
        where = "the environment" if path is None else str(path)
        return [finding async for finding in examine(config, where, offline=offline)]

    return asyncio.run(all_of_it())


def _said(finding: Finding) -> dict[str, str]:
    return {name: str(getattr(finding, name)) for name in finding.__struct_fields__}


def _show(findings: Sequence[Finding], *, show_all: bool) -> None:
    out = console()
    for each in findings:
        if each.state in ("warning", "problem") or show_all:
            what = f"{each.check:<13} {plain(each.subject)}: {plain(each.saw)}"
            out.print(f"[{_COLORS[each.state]}]{each.state:<7}[/]  {what}")
            if each.do:
                out.print(f"{'':<9}{'':<13} [bold]do:[/] {plain(each.do)}")
    counts = {state: sum(each.state == state for each in findings) for state in _COLORS}
    out.print(", ".join(f"{n} {state}" for state, n in counts.items() if n))
