"""Rows of the page of requirements that a run of the tests has shown: what says `works` is held to what passed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "internals" / "requirements.md"
REAL: Final = re.compile(
    r"^tests/((journeys|faults|adapters/(sql|stream|redis|cassandra|kafka|services))/|web/test_browser\.)|"
    r"\[[^\]]*\b(sqlite|postgres|claims|outbox|published|log|cassandra|redis|kafka)\b"
)
"""A test on a real store: by its folder, or by the store that it was given."""
_ROW: Final = re.compile(r"^\| (S\d-\d{2,3}) \| .+? \| works \| .*? \| (.*?) \| .*? \|$", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """What a run says of the rows that work."""

    rows: int
    """Those that say `works`."""
    unshown: Mapping[str, tuple[str, ...]]
    """Rows with a test that ran and did not pass: the id, and those tests."""
    by_long_forms: tuple[str, ...]
    """Rows with a test that only the long forms run (`make faults`)."""
    unreal: tuple[str, ...]
    """Rows that were shown without a real store: decisions, senders, what needs none, and the memory."""


def shown(page: str, outcomes: Mapping[str, Iterable[str]]) -> Shown:
    """Compare the rows of *page* with the *outcomes* of the tests that ran: each by its id, with its parameters."""
    ran: dict[str, list[str]] = {}
    for test in outcomes:
        ran.setdefault(test.partition("[")[0], []).append(test)
    rows = {id_: tuple(re.findall(r"`([^`]+)`", tests)) for id_, tests in _ROW.findall(page)}
    unshown = {
        id_: missing
        for id_, tests in rows.items()
        if (missing := tuple(test for test in tests if test in ran and not _passed(ran[test], outcomes)))
    }
    unreal = [
        id_
        for id_, tests in rows.items()
        if not any(REAL.search(one) for test in tests for one in ran.get(test, [test]))
    ]
    long = [id_ for id_, tests in rows.items() if not ran.keys() >= set(tests)]
    return Shown(len(rows), unshown, tuple(long), tuple(unreal))


def _passed(tests: Iterable[str], outcomes: Mapping[str, Iterable[str]]) -> bool:
    found = [outcome for one in tests for outcome in outcomes[one]]
    return "passed" in found and "failed" not in found


def told(result: Shown) -> list[str]:
    """Say it in lines, defects last."""
    lines = [
        f"{result.rows - len({*result.unshown, *result.by_long_forms})} of {result.rows} rows that say `works` "
        "were wholly shown by this run, "
        f"{result.rows - len(result.unreal)} of them on a real store",
    ]
    if result.by_long_forms:
        lines.append(f"in part by the long forms (make faults): {' '.join(result.by_long_forms)}")
    if result.unreal:
        lines.append(f"without a store: {' '.join(result.unreal)}")
    lines += [f"DEFECT: {id_} says `works`; not passed: {', '.join(tests)}" for id_, tests in result.unshown.items()]
    return lines
