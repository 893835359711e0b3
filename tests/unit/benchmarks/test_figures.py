"""The one table: each figure beside what is wanted, and what limits a machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import isolation
from benchmarks.__main__ import TABLE
from waypost.bench import sustained
from waypost.bench.contention import Limits
from waypost.bench.figures import FIGURES, Ran, limits_of, lines, measured_only, ran
from waypost.bench.rows import Row, row

QUIET = Limits(waypost=0.4, gateway=0.1, load=0.1, others=0.0, locked=0.3, fsync_ms=0.2, cores=2)


def test_a_figure_is_met_at_its_bound_and_missed_beyond() -> None:
    """By value or by ratio, as the figure says."""
    for figure in FIGURES:
        sign = 1 if figure.at == "most" else -1
        for value, met in ((figure.bound, True), (figure.bound + sign * (figure.bound or 1) * 0.01, False)):
            measured = row(figure.bench, figure.name, 1, "µs", "that", 1)
            measured["value" if figure.of == "value" else "ratio"] = value  # exact: no digits are left out
            assert figure.is_met(measured) is met, figure.what


def test_a_line_that_was_not_measured_says_why() -> None:
    """A bench that failed, one that was not run, and one that gave something else."""
    failed = Ran(seconds=1, others=0.25, loop_us=7, failed="needs go, which is not installed here")
    found = [row("sustained", sustained.LOST, 0, "")]
    benches = {"peers": failed, "sustained": failed | {"failed": None}, "idle": failed | {"failed": None}}
    table = lines(found, benches, "CPython 3.11.7, PGO, LTO")
    by_bench = {figure.what: line for figure, line in zip(FIGURES, table, strict=True)}
    lost = next(line for what, line in by_bench.items() if what.endswith(": lost"))
    assert (lost["measured"], lost["met"], lost["others"], lost["wanted"]) == ("0", "yes", "25 %", "0")
    apns2 = by_bench["senders alone: apns2 needs"]
    assert (apns2["measured"], apns2["met"]) == (failed["failed"], "not measured")
    assert by_bench["two workers at rest, CPU of one core"]["measured"] == "`idle` gave no such row"
    assert by_bench["batches of 100"]["measured"] == "`intake` was not run"
    assert {line["met"] for line in measured_only(table)} == {"yes", "not measured"}
    assert len(measured_only(table)) < len(table)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (QUIET, "Nothing was used up"),
        (replace(QUIET, waypost=0.75), "CPU: of 2 cores Waypost had 75%"),
        (replace(QUIET, others=0.2), "Others had 20% of the machine"),
        (replace(QUIET, waypost=0.2, gateway=0.48), "The gateway of the bench"),
        (replace(QUIET, waypost=0.2, load=0.48), "The load generator of the bench"),
        (replace(QUIET, locked=0.8), "The write lock was held 80% of the time: "),
        (replace(QUIET, locked=0.8, fsync_ms=5), "and fsync takes 5.0 ms"),
        (replace(QUIET, fsync_ms=5), "The disk: fsync takes 5.0 ms"),
    ],
)
def test_what_limits_is_said(limits: Limits, words: str) -> None:
    """Each limit alone, also after it went through the rows of a table."""
    assert words in limits.said()[0]
    assert words in limits_of(limits.rows("sustained"))[0]


def test_a_bench_that_fails_ends_nothing() -> None:
    """Its lines say why it failed."""

    def broken() -> list[Row]:
        raise RuntimeError("the disk is full\nand more of it")

    found, seen = ran("idle", broken)
    assert found == []
    assert seen["failed"] == "RuntimeError: the disk is full"


def test_each_noise_of_the_isolation_bench_has_its_figure() -> None:
    """By the name that the bench gives it."""
    named = {each.name.partition(": ")[2] for each in FIGURES if each.bench == "isolation"}
    assert named == {name for name, *_ in isolation._NOISES.values()}


def test_every_figure_comes_from_a_bench_of_the_table() -> None:
    """And each of them fills a line."""
    assert {each.bench for each in FIGURES} == set(TABLE)
