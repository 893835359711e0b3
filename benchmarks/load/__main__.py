"""``make load``: run the scenarios (``ONLY=sustained,users`` for some), print their tables, keep results/load.json."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks.load import campaign, failover, flood, node, refresh, results, sustained, throttling, users
from benchmarks.load.results import Result
from benchmarks.load.setup import Setup
from benchmarks.programs import MissingProgram, in_rust
from waypost.bench.rows import Row

SCENARIOS: dict[str, Callable[[Setup], list[Row]]] = {
    sustained.NAME: sustained.run,
    users.NAME: users.run,
    refresh.NAME: refresh.run,
    throttling.NAME: throttling.run,
    campaign.NAME: campaign.run,
    flood.NAME: flood.run,
    failover.NAME: failover.run,
    node.NAME: node.run,
}


def main(arguments: list[str]) -> int:
    """Run what is asked for; the exit status: 2 for an unknown scenario, 1 where one failed or could not run.

    ``--page`` runs nothing: it writes what is kept into the page.
    """
    if "--page" in arguments:
        page, before = results.PAGE, results.kept()
        found = {name: before[name] for name in SCENARIOS if name in before}
        page.write_text(results.written(page.read_text(encoding="utf-8"), found), encoding="utf-8")
        return 0
    only = os.environ.get("ONLY", "")
    chosen = only.split(",") if only else list(SCENARIOS)
    if unknown := sorted(set(chosen) - set(SCENARIOS)):
        print(f"There is no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}.", file=sys.stderr)
        return 2
    try:
        setup = Setup(in_rust(), float(os.environ.get("SECONDS", "600")))
    except MissingProgram as absent:
        print(f"It needs {absent}, which is not installed here.", file=sys.stderr)
        return 1
    seen: dict[str, Result] = {}
    failed = [name for name in chosen if not _ran(name, setup, seen)]
    if "--json" in arguments:
        print(json.dumps({"results": seen, "failed": failed}, ensure_ascii=False))
    else:
        for name, each in seen.items():
            _print(name, each["rows"])
    return 1 if failed else 0


def _ran(name: str, setup: Setup, seen: dict[str, Result]) -> bool:
    """Run one; whether it held, which is said where it did not: the others are run all the same."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    try:
        seen[name] = results.result(SCENARIOS[name](setup), setup.seconds)
    except MissingProgram as absent:
        print(f"  it needs {absent}, which is not installed here", file=sys.stderr)
        return False
    except (AssertionError, RuntimeError, TimeoutError) as failure:
        print(f"  FAILED: {failure}", file=sys.stderr)
        return False
    results.keep(seen)
    return True


def _print(name: str, rows: list[Row]) -> None:
    table = Table("what", "seen", "unit", "against", "times", title=name, title_justify="left")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for key, cell in row.items() if key != "bench"))
    Console(width=150).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
