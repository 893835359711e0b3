"""The figures that are wanted of Waypost, each beside what a run of the benches measured."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from traceback import print_exception
from typing import Final, Literal, TypedDict

from waypost.bench import bulk, end_to_end, idle, intake, sustained
from waypost.bench.contention import Limits
from waypost.bench.machine import Machine, Meanwhile
from waypost.bench.rows import Row


class Ran(TypedDict):
    """The circumstances of one bench, beside its rows."""

    seconds: float
    others: float
    """The share of the machine that others had meanwhile."""
    loop_us: float
    """CPU of a turn of the calibration loop, before and after."""
    failed: str | None
    """Why it gave no rows."""


class Line(TypedDict):
    """A line of the table."""

    figure: str
    wanted: str
    measured: str
    met: str
    others: str
    interpreter: str


class Report(TypedDict):
    """All of one run: what is kept of it."""

    taken: str
    machine: Machine
    benches: dict[str, Ran]
    results: list[Row]
    table: list[Line]


@dataclass(frozen=True)
class Figure:
    """A figure, where it comes from, and what it should be."""

    what: str
    bench: str
    name: str
    """The row of the bench that has it."""
    bound: float
    at: Literal["most", "least"]
    of: Literal["value", "ratio"] = "value"
    unit: str = ""
    then: str = ""
    """What is wanted once that is reached."""

    @property
    def wanted(self) -> str:
        """Say what is wanted."""
        sign = "≤" if self.at == "most" else "≥"
        exact = "" if self.bound == 0 else f"{sign} "
        return f"{exact}{shown(self.bound)}{self._unit}" + (f", then {self.then}" if self.then else "")

    @property
    def _unit(self) -> str:
        return " times" if self.of == "ratio" else f" {self.unit}" if self.unit else ""

    def measured(self, row: Row) -> str:
        """Say what a row has: its value, or the ratio and what it is of."""
        if self.of == "value":
            return shown(row["value"]) + self._unit
        beside = f"; {row['against']}" if row["against"] else ""
        return f"{shown(row['ratio'] or 0.0)} times ({shown(row['value'])} {row['unit']}{beside})"

    def is_met(self, row: Row) -> bool:
        """Tell whether the row is what is wanted."""
        has = row["value"] if self.of == "value" else row["ratio"]
        holds = operator.le if self.at == "most" else operator.ge
        return has is not None and holds(has, self.bound)


LONGEST_REASON: Final = 200
NOT_MEASURED: Final = "not measured"
_PER_S: Final = "a second"
_OFFERED: Final = f"the whole way, mixed, {sustained.GOAL_PER_S:,} deliveries a second offered"
_CRITICAL: Final = "critical, p99 to the gateway: {}"
_STREAM: Final = "{}, 500 a batch: Waypost's CPU a notification"
_APNS: Final = "apns after 0 ms, {}: CPU a delivery"

FIGURES: Final[Sequence[Figure]] = (
    Figure("CPU a delivery, two workers, no Web Push, beside the code before columns in turn", "before",
           "two workers, no Web Push: CPU a delivery, now and before", 0.333, "most", "ratio"),
    Figure(f"{_OFFERED}: reached", "sustained", sustained.DELIVERIES, sustained.GOAL_PER_S, "least",
           unit=_PER_S, then="40,000"),
    Figure(f"{_OFFERED}: lost", "sustained", sustained.LOST, 0, "most"),
    Figure(f"{_OFFERED}: sent twice", "sustained", sustained.TWICE, 0, "most"),
    Figure("10 % Web Push makes a delivery dearer by", "end_to_end", end_to_end.DEARER, 15, "most", unit="%"),
    Figure("a Web Push message with a fresh key, sender and all", "webpush",
           "webpush after 0 ms, Waypost's sender: CPU a delivery", 200, "most", unit="µs"),
    Figure("… and webpush-go beside it", "webpush", "webpush after 0 ms, Go webpush-go: CPU a delivery", 2, "least",
           "ratio"),
    Figure("one bulk request to everybody: deliveries", "bulk", f"{bulk.EVERYBODY}: deliveries a second", 33_334,
           "least", unit=_PER_S),
    Figure("single POSTs, 128 at once", "intake", intake.accepted(1), 11_574, "least", unit=_PER_S),
    Figure("batches of 100", "intake", intake.accepted(100), 35_000, "least", unit=_PER_S),
    Figure("batches of 1,000", "intake", intake.accepted(1_000), 50_000, "least", unit=_PER_S),
    Figure("Redis Stream, CPU of a notification against a REST batch", "streams", _STREAM.format("Redis Stream"), 1.3,
           "most", "ratio"),
    Figure("Kafka, CPU of a notification against a REST batch", "streams", _STREAM.format("Kafka"), 1.3, "most",
           "ratio"),
    Figure("senders alone: apns2 needs", "peers", _APNS.format("Go sideshow/apns2"), 3, "least", "ratio"),
    Figure("senders alone: Pushy needs", "pushy", _APNS.format("Pushy"), 3, "least", "ratio"),
    Figure("senders alone: aioapns needs", "peers", _APNS.format("aioapns"), 25, "least", "ratio"),
    Figure("FCM groups of 500, 100 ms round trip", "groups", "groups of 500 a second", 58, "least", unit=_PER_S),
    *(
        Figure(f"critical p99 against quiet: {name}", "isolation", _CRITICAL.format(noise), 1.5, "most", "ratio",
               then="1.1")
        for name, noise in (
            ("beside bulk requests", "bulk requests to all in the registry"),
            ("another app floods", "another app floods"),
            ("ten times the silent traffic", "ten times the silent traffic"),
            ("FCM never answers", "FCM a black hole"),
        )
    ),
    Figure("history of 2,000,000 beside none, CPU a delivery", "history",
           "2,000,000 notifications in the history: CPU a delivery", 1.1, "most", "ratio"),
    Figure("memory of the largest process, after a minute at 90 % of the peak", "end_to_end", end_to_end.LARGEST, 150,
           "most", unit="MiB"),
    Figure("two workers at rest, CPU of one core", "idle", idle.AT_REST, 1, "most", unit="%"),
)  # fmt: skip
"""In the order of the table."""


def lines(results: Iterable[Row], benches: Mapping[str, Ran], interpreter: str) -> list[Line]:
    """Return the table, a line for each figure; one that was not measured says why."""
    found = {(each["bench"], each["name"]): each for each in results}
    return [_line(each, found.get((each.bench, each.name)), benches.get(each.bench), interpreter) for each in FIGURES]


def _line(figure: Figure, row: Row | None, ran: Ran | None, interpreter: str) -> Line:
    if row is not None:
        measured, met = figure.measured(row), "yes" if figure.is_met(row) else "no"
    elif ran is None:
        measured, met, interpreter = f"`{figure.bench}` was not run", NOT_MEASURED, ""
    else:
        measured, met = ran["failed"] or f"`{figure.bench}` gave no such row", NOT_MEASURED
    return Line(
        figure=figure.what,
        wanted=figure.wanted,
        measured=measured,
        met=met,
        others="" if ran is None else f"{100 * ran['others']:.0f} %",
        interpreter=interpreter,
    )


def ran(name: str, bench: Callable[[], list[Row]]) -> tuple[list[Row], Ran]:
    """Run a bench, and say what there is to say of it; one that fails gives no rows, but why.

    The rows are those of that *name*: one bench may be run under several, with other programs.
    """
    meanwhile = Meanwhile()
    found: list[Row] = []
    failed = None
    try:
        found = [Row(**(each | {"bench": name})) for each in bench()]
    except Exception as unexpected:  # noqa: BLE001 - its lines say it, and others are run all the same
        failed = f"{type(unexpected).__name__}: {unexpected}".splitlines()[0][:LONGEST_REASON]
        print_exception(unexpected)
    seconds = meanwhile.seconds()
    return found, Ran(seconds=seconds, others=meanwhile.others(), loop_us=meanwhile.loop_us(), failed=failed)


def limits_of(rows: Sequence[Row]) -> list[str]:
    """Say what limited the load that was more than the machine could take; nothing where there was none."""
    found = [each for each in rows if each["bench"] == "sustained"]
    return Limits.of(found).said() if found else []


def measured_only(table: Iterable[Line]) -> list[Line]:
    """Leave out what was not run."""
    return [each for each in table if each["interpreter"]]


def shown(value: float) -> str:
    """Write a figure with three digits, or whole where it is large."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.3g}'):g}"
