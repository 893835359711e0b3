"""``waypost simulate``: what another policy would change of what was sent, without sending anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, console, plain, print_json, progress, table

if TYPE_CHECKING:
    from rich.progress import Progress

    from waypost.bootstrap.simulation import Item, Seen, Simulator
    from waypost.config import Config
    from waypost.domain.ids import AppId
    from waypost.domain.simulation import Difference, Ended
    from waypost.domain.time import Instant
    from waypost.runtime.simulating import Decided

_LIMIT = 50_000
_TOP = 10


@click.command(short_help="Show what another policy would change of what was sent.")
@config_option
@click.option("--app", help="The app; may be left out where there is one.")
@click.option(
    "--policy",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The proposed policy: an app's types, preferences, defaults and time_zone (JSON or YAML). Default: today's.",
)
@click.option("--from", "since", help="The first moment of recorded traffic (RFC 3339). Default: a day ago.")
@click.option("--to", "until", help="The moment before which it ends. Default: now.")
@click.option(
    "--traffic",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Submissions in place of recorded traffic, a JSON object a line, each with the time `at`.",
)
@click.option("--notification", "notification_id", metavar="ID", help="Show what decides about this one alone.")
@click.option(
    "--limit", type=click.IntRange(1), default=_LIMIT, show_default=True, help="The most notifications, the latest."
)
@click.option("--top", type=click.IntRange(0), default=_TOP, show_default=True, help="The most users that are listed.")
@as_json_option
def simulate(  # noqa: PLR0913, PLR0917 - one of each option
    config_path: Path | None,
    app: str | None,
    file: Path | None,
    since: str | None,
    until: str | None,
    traffic: Path | None,
    notification_id: str | None,
    limit: int,
    top: int,
    as_json: bool,
) -> None:
    """Let recorded traffic, or that of a file, happen under today's policy and a proposed one, and show the difference.

    Nothing is sent, and nothing is written. Users want what they want today, and have the devices of today.


    \b
    Examples:
      waypost simulate --policy proposed.json
      waypost simulate --policy proposed.json --from 2026-11-25T00:00:00Z --to 2026-11-26T00:00:00Z --json
      waypost simulate --policy proposed.json --traffic black-friday.jsonl
      waypost simulate --policy proposed.json --notification 019c1234-5678-7abc-8def-0123456789ab
    """
    config, _ = read_config(config_path)
    chosen = _app_of(config, app)
    if notification_id is not None:
        before, after = asyncio.run(_explained(config, chosen, file, notification_id, since))
        _show_one(before, after, as_json=as_json)
        return
    made, is_whole = asyncio.run(_simulated(config, chosen, file, traffic, _span(since, until), limit, top))
    if as_json:
        print_json(_plain(made) | {"app": chosen, "complete": is_whole})
        return
    if not is_whole:
        click.echo(f"The latest {limit:,} alone: --limit takes more.", err=True)
    _show(made)


def _app_of(config: Config, app: str | None) -> AppId:
    from waypost.domain.ids import AppId

    if app is None and len(config.apps) == 1:
        return next(iter(config.apps))
    if app is None or app not in config.apps:
        raise click.UsageError(f"--app is one of {', '.join(config.apps)}.")
    return AppId(app)


def _span(since: str | None, until: str | None) -> tuple[Instant, Instant]:
    from waypost.domain.time import DAY_MS, later
    from waypost.runtime.clock import SystemClock

    end = SystemClock().now() if until is None else _instant(until, "--to")
    return later(end, -DAY_MS) if since is None else _instant(since, "--from"), end


def _instant(said: str, option: str) -> Instant:
    from waypost.domain.time import from_datetime

    try:
        return from_datetime(datetime.fromisoformat(said))
    except ValueError:
        raise click.BadParameter("is a time such as 2026-11-26T00:00:00Z", param_hint=option) from None


def _proposed(config: Config, app: AppId, file: Path | None) -> Config:
    from waypost.bootstrap.simulation import proposal

    return config if file is None else proposal(config, app, file)


async def _simulated(
    config: Config,
    app: AppId,
    file: Path | None,
    traffic: Path | None,
    span: tuple[Instant, Instant],
    limit: int,
    top: int,
) -> tuple[Difference, bool]:
    from waypost.bootstrap.simulation import simulating

    with progress() as shown:
        async with simulating(app, config, _proposed(config, app, file)) as simulator:
            items, is_whole = await _read(simulator, traffic, span, limit)
            return await simulator.difference(items, top, _telling(shown)), is_whole


async def _read(
    simulator: Simulator, traffic: Path | None, span: tuple[Instant, Instant], limit: int
) -> tuple[list[Item], bool]:
    if traffic is None:
        return await simulator.recorded(*span, limit)
    items = await simulator.read(traffic, limit + 1)
    return items[:limit], len(items) <= limit


def _telling(shown: Progress) -> Any:
    task = shown.add_task("simulating", total=None)
    return lambda done, of: shown.update(task, completed=done, total=of)


async def _explained(
    config: Config, app: AppId, file: Path | None, notification_id: str, since: str | None
) -> tuple[Seen, Seen]:
    from waypost.bootstrap.simulation import simulating
    from waypost.domain.ids import parse_id

    try:
        wanted = parse_id(notification_id)
    except ValueError:
        raise click.BadParameter("is the id of a notification", param_hint="--notification") from None
    async with simulating(app, config, _proposed(config, app, file)) as simulator:
        return await simulator.explained(wanted, None if since is None else _instant(since, "--from"))


def _plain(value: object) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def _show(made: Difference) -> None:
    out = console()
    out.print(
        f"{made.notifications:,} notifications of {_users(made.users)}:"
        f" {made.changed:,} fare otherwise, of {_users(made.users_changed)}"
    )
    rows = [("all", *_ended(each)) for each in made.ends]
    if made.digests.before or made.digests.after:
        rows.append(("all", "digests", made.digests.before, made.digests.after))
    for kind in made.types:
        rows += [(kind.type or "no type", *_ended(each)) for each in kind.ends if each.before != each.after]
    out.print(table(("type", "ending", "today", "proposed"), rows))
    if made.moves:
        moves = [(each.was, each.becomes, f"{each.count:,}", each.example) for each in made.moves]
        out.print(table(("today", "proposed", "count", "notification"), moves))
    hours = [(f"{each.hour:02}:00", each.before, each.after) for each in made.hours if each.before or each.after]
    out.print(table(("hour of the user", "today", "proposed"), hours))
    if made.top_users:
        users = [(each.user_id, each.before, each.after, each.changed) for each in made.top_users]
        out.print(table(("user", "today", "proposed", "fare otherwise"), users))


def _users(count: int) -> str:
    return "1 user" if count == 1 else f"{count:,} users"


def _ended(each: Ended) -> tuple[str, int, int]:
    return each.ending if each.reason is None else f"{each.ending} ({each.reason})", each.before, each.after


def _show_one(before: Seen, after: Seen, *, as_json: bool) -> None:
    sides = {"today": before, "proposed": after}
    if as_json:
        print_json({name: _seen(seen) for name, seen in sides.items()})
        return
    out = console()
    for name, seen in sides.items():
        said = _seen(seen)
        reason = "" if said["reason"] is None else f" ({plain(said['reason'])})"
        out.print(f"[bold]{name}[/]: {said['ending']}{reason}")
        columns = ("at", "rule", "target", "verdict")
        out.print(table(columns, [[step[column] for column in columns] for step in said["steps"]]))


def _seen(seen: Seen) -> dict[str, Any]:
    fate = seen.fate
    return {
        "ending": str(fate.ending),
        "reason": fate.reason,
        "at": None if fate.at is None else _iso(fate.at),
        "steps": [step for decided in seen.decided for step in _steps(decided)],
    }


def _steps(decided: Decided) -> Iterator[dict[str, str]]:
    """Yield what each rule said, and then what became of each target."""
    for ruling in decided.rulings:
        yield _step(decided.at, ruling.rule, ruling.name, _words(ruling.verdict))
    for name, settlement in decided.changes:
        yield _step(decided.at, "", name, _words(settlement))
    for name in decided.sent:
        yield _step(decided.at, "", name, "sent")


def _step(at: Instant, rule: str, target: str, verdict: str) -> dict[str, str]:
    return {"at": _iso(at), "rule": rule, "target": target, "verdict": verdict}


def _words(verdict: object) -> str:
    from waypost.domain.routing import Deferred, LeftOut, Noted
    from waypost.domain.settlement import Dead, Parked, Suppressed

    match verdict:
        case LeftOut(reason):
            return f"left out: {reason}"
        case Suppressed(reason):
            return f"suppressed: {reason}"
        case Deferred(until):
            return f"deferred until {_iso(until)}"
        case Parked(condition, until):
            return f"waits for {condition} until {_iso(until)}"
        case Noted(what):
            return f"noted: {what}"
        case Dead(code):
            return f"fails: {code}"
        case other if type(other).__name__ == "CredentialId":
            return f"sent with {other}"
        case other:
            return type(other).__name__.lower()


def _iso(at: Instant) -> str:
    from waypost.domain.time import isoformat

    return isoformat(at)
