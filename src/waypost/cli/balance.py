"""``waypost balance``: whether everything that was accepted is somewhere."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from waypost.cli.connect import api_options, config_option, read_config
from waypost.cli.printing import as_json_option, console, print_json, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client
    from waypost.config import Config
    from waypost.domain.balance import Difference

_HOUR_S = 3_600
_CAME = {"requests": "requests", "notifications": "accepted", "deliveries": "targets"}
_OPEN = ("scheduled", "waiting", "processing", "parked", "under_way")


def _or_recount(command: Callable[..., None]) -> Callable[..., None]:
    """Let *command* ask the API, or open the store with --audit, which needs no key."""

    @functools.wraps(command)
    def chosen(*, recount: bool, config_path: Path | None, **given: Any) -> None:
        if not recount:
            command(**given)
            return
        config, _ = read_config(config_path)
        _show_differences(asyncio.run(_recounted(config)), as_json=given["as_json"])

    return chosen


@click.command(short_help="Check that everything accepted is somewhere.")
@click.option("--audit", "recount", is_flag=True, help="Open the store, count every row anew, and compare.")
@config_option
@_or_recount
@api_options
@as_json_option
def balance(client: Client, as_json: bool) -> None:
    """Show what came in, what ended and what is open, of the key's app. Exits with 1 where it does not add up.

    With --audit it opens the store itself, also while Waypost runs, counts the rows of all apps, and says what differs
    from the counters.

    \b
    Examples:
      waypost balance
      waypost balance --audit --config waypost.yaml
    """
    answer = client.balance()
    if as_json:
        print_json(answer)
    else:
        rows = [row for lane, lines in answer["lanes"].items() for row in _rows(lane, lines)]
        console().print(table(("lane", "line", "came in", "ended", "open", "missing"), rows) if rows else "nothing yet")
        said = "it adds up" if answer["adds_up"] else "it does NOT add up: waypost balance --audit says where"
        console().print(f"as of {short_time(answer['as_of'])}: {said}")
    if not answer["adds_up"]:
        raise SystemExit(1)


def _rows(lane: str, lines: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    requests = lines["requests"]
    answered = _parts({each: requests[each] for each in ("accepted", "duplicates", "refused")})
    yield lane, "requests", f"{requests['requests']:,}", answered, "", requests["difference"]
    for line in ("notifications", "deliveries"):
        flow = lines[line]
        still_open = _parts({each: flow[each] for each in _OPEN if each in flow})
        came = flow[_CAME[line]] + flow.get("recipients", 0)
        yield lane, line, f"{came:,}", _parts(flow["ended"]), still_open, flow["difference"]


def _parts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word} {n:,}" for word, n in counts.items() if n)


async def _recounted(config: Config) -> Sequence[Difference]:
    from waypost.bootstrap.admin import open_admin_store

    async with open_admin_store(config) as store:
        return await store.balance.audit()


def _show_differences(differences: Sequence[Difference], *, as_json: bool) -> None:
    if as_json:
        print_json({"differences": [_said(each) | {"hours": _hours(each)} for each in differences]})
    elif differences:
        rows = [(*_said(each).values(), ", ".join(_hours(each))) for each in differences]
        console().print(table(("app", "lane", "line", "status", "counted", "rows", "hours"), rows))
    else:
        console().print("every row is counted, and every count has its rows")
    if differences:
        raise SystemExit(1)


def _said(each: Difference) -> dict[str, object]:
    named = {"app": each.app, "lane": each.lane, "line": each.line, "status": each.status}
    return {**named, "counted": each.counted, "rows": each.found}


def _hours(each: Difference) -> list[str]:
    return [datetime.fromtimestamp(hour * _HOUR_S, UTC).strftime("%Y-%m-%dT%HZ") for hour in each.hours]
