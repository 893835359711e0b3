"""The table on the page is that of the run that is kept beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.report import report
from waypost.bench.figures import FIGURES, Ran, Report
from waypost.bench.rows import row


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with a place for the table, and places for runs."""
    (tmp_path / "page.md").write_text(f"# Figures\n\n{page.BEGIN}\n{page.END}\n\nThe end.\n", encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "KEPT", tmp_path / "bench" / "latest.json")
    monkeypatch.setattr(page, "LATEST", tmp_path / "latest.json")
    return tmp_path


def a_run(*left_out: str) -> Report:
    """All benches, each with its figures at their bounds."""
    rows = [row(each.bench, each.name, each.bound, each.unit, "that", each.bound) for each in FIGURES]
    benches = {each.bench: Ran(seconds=60, others=0.04, loop_us=7, failed=None) for each in FIGURES}
    return report(
        [each for each in rows if each["bench"] not in left_out],
        {name: each for name, each in benches.items() if name not in left_out},
    )


def test_a_whole_run_is_kept_and_written(folder: Path) -> None:
    """And what is written is what the check wants; another figure in its place is complained of."""
    page.LATEST.write_text(json.dumps(a_run()), encoding="utf-8")
    assert page.main(["--keep"]) == 0
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.count(" | yes | 4 % |\n") == len(FIGURES)
    assert text.startswith("# Figures\n") and text.endswith("\n\nThe end.\n")
    assert json.loads(page.KEPT.read_text(encoding="utf-8")) == a_run() | {"taken": page.kept()["taken"]}  # type: ignore[index] # it is kept now
    assert page.main(["--check"]) == 0
    page.PAGE.write_text(text.replace("| yes |", "| no |", 1), encoding="utf-8")
    assert page.main(["--check"]) == 1
    assert page.main([]) == 0, "written anew from what is kept"
    assert page.PAGE.read_text(encoding="utf-8") == text


def test_a_run_of_some_benches_is_not_kept() -> None:
    """One table is from one run."""
    page.LATEST.write_text(json.dumps(a_run("idle", "intake")), encoding="utf-8")
    assert page.main(["--keep"]) == 1
    assert not page.KEPT.exists()
    assert page.unfinished(a_run("idle", "intake")) == ["`idle` was not run", "`intake` was not run"]
