"""The report of `make load`: kept by scenario, and written where the page has a place for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.load import results
from benchmarks.load.__main__ import SCENARIOS
from waypost.bench.rows import row

PAGE = results.PAGE.read_text(encoding="utf-8")
ROWS = [row("sustained", "accepted a second", 990.4, "1/s", "1,000 wanted", 0.99)]


def test_a_scenario_that_is_run_again_replaces_its_own_result_alone(tmp_path: Path) -> None:
    """What others came to before stays."""
    file = tmp_path / "results" / "load.json"
    for name, seconds in (("sustained", 600.0), ("users", 60.0), ("sustained", 30.0)):
        results.keep({name: results.result(ROWS, seconds)}, file)
    assert {name: each["seconds"] for name, each in results.kept(file).items()} == {"sustained": 30.0, "users": 60.0}


def test_the_report_is_written_between_its_marks_as_often_as_one_likes() -> None:
    """And nothing else of the page changes."""
    said = {"sustained": results.result(ROWS, 600.0)}
    once = results.written(PAGE, said)
    assert "| accepted a second | 990 1/s | 1,000 wanted | 0.99 |" in once
    assert results.written(once, said) == once
    assert once.split(results.BEGIN)[0] == PAGE.split(results.BEGIN)[0]
    assert once.split(results.END)[1] == PAGE.split(results.END)[1]
    with pytest.raises(ValueError, match="no place"):
        results.written("# A page", said)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_on_the_page(name: str) -> None:
    """With what it does and what is asked for."""
    assert f"\n| `{name}` | " in PAGE
