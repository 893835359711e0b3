"""``waypost bench``: what Waypost costs and carries on this machine, and what limits it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from waypost.cli.printing import as_json_option, console, print_json, progress, table

if TYPE_CHECKING:
    from waypost.bench.figures import Line, Ran
    from waypost.bench.rows import Row

NAMES = ("end_to_end", "sustained", "bulk", "intake", "idle", "kernel")


@click.command(short_help="Measure Waypost's speed on this machine, and what limits it.")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar=" ".join(f"[{name}]" for name in NAMES))
@click.option("--seconds", default=15.0, show_default=True, help="Seconds for which a load is held.")
@click.option("--rows", "with_rows", is_flag=True, help="Print all that was measured, too.")
@as_json_option
def bench(names: tuple[str, ...], seconds: float, with_rows: bool, as_json: bool) -> None:
    """Measure what is wanted of Waypost on this machine, beside the figure that is wanted, and say what limits it.

    Runs all benches, or the named ones, in five minutes or so. A gateway in a process of its own stands in for the
    providers, a load generator for the callers, and SQLite is in a temporary folder: nothing leaves this machine. The
    load is mixed: users in no order, several shapes and lanes, dead and throttled devices, duplicates. CPU is that of
    Waypost's own processes; rates are what all of them did together on the same cores.

    \b
    Benches:
      end_to_end   CPU a delivery with and without Web Push; latency and memory at parts of the peak
      sustained    more than the machine can take for a while: what is reached, lost, sent twice, and what limits it
      bulk         one request to everybody
      intake       single POSTs and batches, durable
      idle         CPU at rest
      kernel       a request of the HTTP/2 client

    \b
    Examples:
      waypost bench
      waypost bench sustained --seconds 60
      waypost bench end_to_end kernel --rows
      waypost bench intake --json
    """
    from waypost.bench import figures
    from waypost.bench.machine import machine

    chosen, benches = names or NAMES, _benches(seconds)
    rows: list[Row] = []
    ran: dict[str, Ran] = {}
    with progress() as bar:
        task = bar.add_task("", total=len(chosen))
        for name in chosen:
            bar.update(task, description=name)
            found, ran[name] = figures.ran(name, benches[name])
            rows += found
            bar.advance(task)
    here = machine()
    lines = figures.measured_only(figures.lines(rows, ran, here["interpreter"]))
    limits = figures.limits_of(rows)
    if as_json:
        print_json({"machine": here, "table": lines, "limits": limits, "benches": ran, "results": rows})
    else:
        _print(lines, limits, rows if with_rows else _without_a_figure(rows, chosen))
    if failed := [f"{name}: {each['failed']}" for name, each in ran.items() if each["failed"]]:
        raise click.ClickException("; ".join(failed))


def _print(lines: Iterable[Line], limits: Iterable[str], rows: list[Row]) -> None:
    if rows:
        columns = ("bench", "what", "value", "unit", "against", "ratio")
        console().print(table(columns, [tuple(each.values()) for each in rows]))
    columns = ("figure", "wanted", "measured", "met", "others", "interpreter")
    console().print(table(columns, [tuple(each.values()) for each in lines]))
    for each in limits:
        click.echo(f"What limits it: {each}")


def _without_a_figure(rows: Iterable[Row], chosen: Iterable[str]) -> list[Row]:
    """Return the rows of benches that no figure comes from: of what was asked for, something is shown."""
    return [each for each in rows if each["bench"] == "kernel" and "kernel" in chosen]


def _benches(seconds: float) -> dict[str, Callable[[], list[Row]]]:
    from waypost.bench import bulk, end_to_end, idle, intake, kernel, sustained
    from waypost.bench.programs import OWN

    size = end_to_end.Size(users=4_000, warm_up=1_000, notifications=4_000, sustained_s=seconds)
    return {
        "end_to_end": lambda: end_to_end.run(OWN, size),
        "sustained": lambda: sustained.run(OWN, sustained.Offer(users=20_000, seconds=seconds, warm_up=1_000)),
        "bulk": lambda: bulk.run(OWN, 10_000),
        "intake": lambda: intake.run(OWN),
        "idle": lambda: idle.run(OWN, seconds),
        "kernel": lambda: kernel.run(OWN, 10_000),
    }
