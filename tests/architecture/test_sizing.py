"""What docs/scale.md says that so many a day need follows from what docs/internals/capacity.md says was measured."""

from __future__ import annotations

import json
import re

import pytest

from scripts.sizing import BEGIN, CONNECTIONS, END, SHOWN_ON_ONE, STACKS, Wanted, main, markdown, needs_of, scaled, size
from tests.architecture.trees import ROOT
from waypost.bootstrap.doctor.machine import WORKER_BYTES

PAGE = (ROOT / "docs" / "scale.md").read_text()
CAPACITY = (ROOT / "docs" / "internals" / "capacity.md").read_text()
PERFORMANCE = (ROOT / "docs" / "internals" / "performance.md").read_text()


def test_the_page_has_the_table_as_it_is_computed() -> None:
    """`python -m scripts.sizing --markdown` prints it."""
    assert BEGIN + PAGE.split(BEGIN)[1].split(END)[0] + END == markdown()


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("notification, content", "notification_bytes"),
        ("receipt |", "receipt_bytes"),
        ("device |", "device_bytes"),
        ("dedup key |", "key_bytes"),
    ],
)
def test_rows_weigh_what_was_measured(row: str, name: str) -> None:
    (line,) = [line for line in CAPACITY.splitlines() if line.startswith(f"| {row}")]
    sqlite, postgres = (float(cell) for cell in re.findall(r"(\d+) B\b", line)[:2])
    assert (getattr(STACKS["sqlite"], name), getattr(STACKS["postgres"], name)) == (sqlite, postgres)


def test_processors_and_memory_are_what_was_measured() -> None:
    idle = float(re.findall(r"A delivery with SQLite takes about (\d+) µs", CAPACITY)[0])
    assert STACKS["sqlite"].cpu_us == idle
    for stack, row in (("postgres", "PostgreSQL |"), ("log", "log, keys in Redis")):
        line = next(line for line in CAPACITY.splitlines() if line.startswith(f"| {row}"))
        cells = line.strip("|").split("|")
        ours, theirs = float(cells[1]), float(re.findall(r"[\d.]+\d", cells[4])[0])
        assert STACKS[stack].cpu_us == pytest.approx(ours * idle)
        assert STACKS[stack].servers_us == pytest.approx(theirs * idle)
    assert f"{SHOWN_ON_ONE:,} deliveries a second" in PERFORMANCE
    measured = int(re.findall(r"memory of a process .*?\| (\d+) MB at", PERFORMANCE)[0]) * 1_000_000
    assert measured <= WORKER_BYTES <= 1.25 * measured
    assert "seven a worker" in PAGE
    assert CONNECTIONS == 7


def test_the_plan_of_a_hundred_million_is_the_same() -> None:
    """Cores at the peak, and bytes of 90 days, as the capacity page has them."""
    plan = Wanted(a_day=100e6, busy=1.0)
    peak = needs_of(plan, "postgres")
    assert (
        f"| PostgreSQL | {peak.deliveries_s * STACKS['postgres'].cpu_us / 1e6:.1f} | {peak.server_cores:.1f} |"
        in CAPACITY
    )
    kept = needs_of(Wanted(a_day=100e6, keys=0.0), "sqlite").kept_bytes
    receipts, contents = (float(each) for each in re.findall(r"90 days \([\d.]+ billion\) \| ([\d.]+) TB", CAPACITY))
    assert kept == pytest.approx((receipts + contents) * 1e12, rel=0.02)


def test_what_a_reader_puts_in_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice the users, the peak or the CPU take twice as much of what follows from it."""
    plain = needs_of(Wanted(a_day=100e6), "postgres")
    assert needs_of(Wanted(a_day=100e6, peak=20), "postgres").deliveries_s == pytest.approx(2 * plain.deliveries_s)
    assert scaled(Wanted(a_day=100e6), "postgres", 2 * STACKS["postgres"].cpu_us).server_cores == pytest.approx(
        2 * plain.server_cores
    )
    with_users = needs_of(Wanted(a_day=100e6, users=1e6), "postgres")
    assert with_users.kept_bytes - plain.kept_bytes == pytest.approx(1e6 * 2.5 * 680)
    main(["--a-day", "1e6", "--stack", "log", "--json"])
    assert json.loads(capsys.readouterr().out)["workers"] == 2
    main(["--a-day", "1e9"])
    assert "take PostgreSQL" in capsys.readouterr().out


def test_sizes_are_said_with_two_digits() -> None:
    assert [size(n) for n in (71.3e6, 6.44e9, 999e9, 170.4e12)] == ["71 MB", "6.4 GB", "1,000 GB", "170 TB"]
