"""``waypost bench``: what Waypost costs on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from waypost.cli.printing import as_json_option, console, print_json, progress, table

if TYPE_CHECKING:
    from waypost.bench.rows import Row

NAMES = ("kernel", "intake", "end_to_end")


@click.command(short_help="Measure Waypost's speed on this machine.")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[kernel] [intake] [end_to_end]")
@click.option("--seconds", default=15.0, show_default=True, help="Seconds for which end_to_end holds 90 % of the peak.")
@as_json_option
def bench(names: tuple[str, ...], seconds: float, as_json: bool) -> None:
    """Measure the CPU of a request to a provider, of accepting a notification, and of a delivery from REST to receipts.

    Runs all of them, or the named ones; each takes some minutes. A gateway in a process of its own stands in for the
    providers, a load generator for the callers, and SQLite is in a temporary folder: nothing leaves this machine. CPU
    is that of Waypost's own processes; deliveries a second are what all of them did together on the same cores.

    \b
    Examples:
      waypost bench
      waypost bench kernel end_to_end --seconds 60
      waypost bench intake --json
    """
    rows: list[Row] = []
    benches = _benches(seconds)
    with progress() as bar:
        task = bar.add_task("", total=len(names or NAMES))
        for name in names or NAMES:
            bar.update(task, description=name)
            found = benches[name]()
            bar.advance(task)
            rows += found
    if as_json:
        print_json(rows)
        return
    columns = ("bench", "what", "value", "unit", "against", "ratio")
    console().print(table(columns, [tuple(each.values()) for each in rows]))


def _benches(seconds: float) -> dict[str, Callable[[], list[Row]]]:
    from waypost.bench import end_to_end, intake, kernel
    from waypost.bench.programs import OWN

    size = end_to_end.Size(users=4_000, warm_up=1_000, notifications=4_000, sustained_s=seconds)
    return {
        "kernel": lambda: kernel.run(OWN, 10_000),
        "intake": lambda: intake.run(OWN),
        "end_to_end": lambda: end_to_end.run(OWN, size),
    }
