"""Compute a capacity plan from measured figures: ``python -m scripts.plan --a-day 100e6 --cpu-us 72``.

The defaults are the figures of docs/internals/capacity.md; put in your own, such as what ``make load`` or
``waypost bench end_to_end`` said of your machine.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Final

from scripts.sizing import DAY_S, STACKS

_SQLITE: Final = STACKS["sqlite"]
FCM_GROUP: Final = 500
FEW: Final = 100
"""Below which a figure is printed with decimals."""


@dataclass(frozen=True)
class Figures:
    """Figures that are planned for, and figures that were measured."""

    a_day: float = 100e6
    """Notifications."""
    devices: float = 2.5
    """Devices of a user."""
    peak: float = 10.0
    """Times the average."""
    cpu_us: float = _SQLITE.cpu_us
    """Waypost's CPU of a delivery."""
    servers_us: float = _SQLITE.servers_us
    """CPU of a delivery in the store's servers."""
    receipt_bytes: float = _SQLITE.receipt_bytes
    kept_days: float = 90.0
    answer_ms: float = 100.0
    """The time that a provider takes for an answer."""
    dispatchers: float = 4.0
    """Machines that share the peak."""
    apns_streams: float = 25_000.0
    """Requests that one of them may have in flight at Apple."""
    fcm_streams: float = 100.0
    """Messages in flight on one connection to Google."""


@dataclass(frozen=True)
class Plan:
    """The plan that follows; rates are a second, at the average and at the peak."""

    notifications: float
    deliveries: float
    peak_notifications: float
    peak_deliveries: float
    cores_at_peak: float
    server_cores_at_peak: float
    receipts_tb: float
    dispatcher_deliveries: float
    apns_streams_used: float
    """The share, if all went to Apple and an answer took a second, as S1 reckons."""
    fcm_groups: float
    """Groups of 500, if all went to Google."""
    fcm_connection: float
    """Messages that one connection carries a second."""


def plan_of(figures: Figures) -> Plan:
    """Compute the plan."""
    notifications = figures.a_day / DAY_S
    deliveries = notifications * figures.devices
    peak = deliveries * figures.peak
    return Plan(
        notifications=notifications,
        deliveries=deliveries,
        peak_notifications=notifications * figures.peak,
        peak_deliveries=peak,
        cores_at_peak=peak * figures.cpu_us / 1e6,
        server_cores_at_peak=peak * figures.servers_us / 1e6,
        receipts_tb=figures.a_day * figures.devices * figures.kept_days * figures.receipt_bytes / 1e12,
        dispatcher_deliveries=peak / figures.dispatchers,
        apns_streams_used=peak / figures.dispatchers / figures.apns_streams,
        fcm_groups=peak / FCM_GROUP,
        fcm_connection=figures.fcm_streams * 1e3 / figures.answer_ms,
    )


def main() -> None:
    """Print the plan for the figures of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    for name, value in asdict(Figures()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=value, help=f"{value:g}")
    said = vars(parser.parse_args())
    as_json = said.pop("json")
    plan = asdict(plan_of(Figures(**said)))
    if as_json:
        print(json.dumps(plan))
        return
    for name, value in plan.items():
        print(f"{name.replace('_', ' '):24}{f'{value:,.0f}' if value >= FEW else f'{value:.3g}':>12}")


if __name__ == "__main__":
    main()
