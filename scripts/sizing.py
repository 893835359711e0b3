"""Compute what so many notifications a day need: ``python -m scripts.sizing --a-day 10e6 --stack postgres``.

Its figures are those that were measured (docs/internals/capacity.md); put in your own devices, peak, days and CPU.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from waypost.bootstrap.doctor.machine import WORKER_BYTES

DAY_S: Final = 86_400
BEGIN: Final = "<!-- generated: python -m scripts.sizing --markdown -->"
END: Final = "<!-- end of generated -->"
TABLE: Final = (100e3, 1e6, 10e6, 100e6, 1e9)
"""The notifications a day of the page's rows."""


@dataclass(frozen=True)
class Measured:
    """The figures of a stack, as docs/internals/capacity.md has them."""

    cpu_us: float
    """Waypost's CPU of a delivery, on an idle core."""
    servers_us: float
    """CPU of a delivery in its servers, for one copy."""
    notification_bytes: float
    """A notification with its content, indexes included; so are the others."""
    receipt_bytes: float
    device_bytes: float
    key_bytes: float
    one_machine: bool = False
    """Whether all of it is on one machine."""


_SQLITE_US: Final = 72.0
STACKS: Final[Mapping[str, Measured]] = {
    "sqlite": Measured(_SQLITE_US, 0.0, 333, 152, 282, 71, one_machine=True),
    "postgres": Measured(1.35 * _SQLITE_US, 1.15 * _SQLITE_US, 924, 381, 680, 154),
    "log": Measured(1.3 * _SQLITE_US, 0.9 * _SQLITE_US, 924, 381, 680, 230),
}
"""The log's ledger is reckoned on PostgreSQL, its keys in Redis."""
SHOWN_ON_ONE: Final = 8_600
"""Deliveries a second that one machine of two busy cores was seen to carry on SQLite."""
CONNECTIONS: Final = 7
"""Connections of a worker to PostgreSQL."""


@dataclass(frozen=True)
class Wanted:
    """The load that is to be carried."""

    a_day: float = 1e6
    """Notifications."""
    devices: float = 2.5
    """Deliveries of one."""
    users: float = 0.0
    """Users with devices; 0: not reckoned."""
    peak: float = 10.0
    """The busiest second, times the average one."""
    kept_days: float = 90.0
    """`retention.notifications_days`."""
    keys: float = 1.0
    """The share that is sent with an idempotency key, which is kept for a day."""
    busy: float = 0.5
    """The share of a core that a process is to use at the peak."""


@dataclass(frozen=True)
class Needs:
    """The machines and disks that carry it."""

    deliveries_s: float
    """At the peak."""
    workers: int
    """Processes that deliver; two where one may die, and one core for each."""
    memory_bytes: float
    """Memory of all workers."""
    server_cores: float
    """Cores of database, log and cache at the peak, for one copy."""
    connections: int
    """To PostgreSQL."""
    disk_a_day_bytes: float
    kept_bytes: float
    """Bytes of what is kept at last: notifications, receipts, keys, devices."""
    fits: bool
    """Whether it is within what was seen; else it is computed."""


def needs_of(wanted: Wanted, stack: str) -> Needs:
    """Compute what *wanted* needs on a stack."""
    measured = STACKS[stack]
    at_peak = wanted.a_day * wanted.devices * wanted.peak / DAY_S
    workers = max(2, math.ceil(at_peak * measured.cpu_us / 1e6 / wanted.busy))
    rows = wanted.a_day * (measured.notification_bytes + wanted.devices * measured.receipt_bytes)
    keys = wanted.a_day * wanted.keys * measured.key_bytes
    devices = wanted.users * wanted.devices * measured.device_bytes
    return Needs(
        deliveries_s=at_peak,
        workers=workers,
        memory_bytes=workers * WORKER_BYTES,
        server_cores=at_peak * measured.servers_us / 1e6 / wanted.busy,
        connections=0 if measured.one_machine else workers * CONNECTIONS,
        disk_a_day_bytes=rows,
        kept_bytes=rows * wanted.kept_days + keys + devices,
        fits=at_peak <= SHOWN_ON_ONE if measured.one_machine else True,
    )


def markdown() -> str:
    """Write the table of docs/scale.md."""
    head = "| notifications a day | deliveries/s at the peak | SQLite: workers, memory | disk a day, kept |"
    head += " PostgreSQL: workers, cores of the server | disk a day, kept |\n|---|---|---|---|---|---|\n"
    return f"{BEGIN}\n{head}{''.join(map(_row, TABLE))}{END}"


def _row(a_day: float) -> str:
    one, many = (needs_of(Wanted(a_day=a_day), stack) for stack in ("sqlite", "postgres"))
    on_one = f"{one.workers}, {size(one.memory_bytes)}" if one.fits else "beyond what was seen"
    kept = f"{size(one.disk_a_day_bytes)}, {size(one.kept_bytes)}" if one.fits else ""
    cores = _cores(many.server_cores)
    cells = (f"{a_day:,.0f}", _rounded(one.deliveries_s), on_one, kept, f"{many.workers}, {cores}")
    return f"| {' | '.join(cells)} | {size(many.disk_a_day_bytes)}, {size(many.kept_bytes)} |\n"


def _cores(n: float) -> str:
    return "under 0.1" if 0 < n < 0.1 else f"{n:.1f}" if n < 10 else f"{n:.0f}"


def size(n: float) -> str:
    """Write bytes with two digits."""
    for unit in ("MB", "GB", "TB"):
        n /= 1_000 if unit != "MB" else 1_000_000
        if n < 1_000 or unit == "TB":
            return f"{float(f'{n:.2g}'):,.10g} {unit}"
    raise AssertionError("unreachable: the last unit takes all")


def _rounded(n: float) -> str:
    return f"{float(f'{n:.2g}'):,.10g}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the command line's figures need."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", choices=STACKS, default="sqlite")
    parser.add_argument("--cpu-us", type=float, help="Waypost's CPU of a delivery, as `waypost bench` says")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/scale.md")
    for name, value in asdict(Wanted()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=value, help=f"default: {value:g}")
    said = vars(parser.parse_args(arguments))
    if said.pop("markdown"):
        print(markdown())
        return
    stack, cpu_us, as_json = said.pop("stack"), said.pop("cpu_us"), said.pop("json")
    needs = needs_of(Wanted(**said), stack)
    if cpu_us is not None:
        needs = scaled(Wanted(**said), stack, cpu_us)
    print(json.dumps(asdict(needs)) if as_json else _for_people(needs))


def scaled(wanted: Wanted, stack: str, cpu_us: float) -> Needs:
    """Compute the same with another CPU of a delivery: the servers' is reckoned to differ as much."""
    share = cpu_us / STACKS[stack].cpu_us
    return needs_of(replace(wanted, busy=wanted.busy / share), stack)


def _for_people(needs: Needs) -> str:
    lines = {
        "deliveries a second at the peak": _rounded(needs.deliveries_s),
        "workers, and a core for each": f"{needs.workers:,}",
        "memory of the workers": size(needs.memory_bytes),
        "cores of the servers": _cores(needs.server_cores),
        "connections to PostgreSQL": f"{needs.connections:,}",
        "disk a day": size(needs.disk_a_day_bytes),
        "disk of what is kept": size(needs.kept_bytes),
    }
    said = "\n".join(f"{name:34}{value:>10}" for name, value in lines.items())
    return said if needs.fits else f"{said}\nThat is more than one machine was seen to carry: take PostgreSQL."


if __name__ == "__main__":
    main()
