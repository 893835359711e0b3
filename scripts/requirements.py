"""Write what the page of requirements says of tests and counts: from the marks of the tests, and from its rows.

``python -m scripts.requirements`` writes it. By hand are the id, what is wanted, the status, the module and what is
missing; a test is named by its mark alone (``@shows("S1-42")``, tests/shows.py).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "internals" / "requirements.md"
MARK: Final = "shows"
_ROW: Final = re.compile(r"^(\| (S\d-\d{2,3}) \| .+? \| (\w+) \| .*? \|) .*? (\| .*? \|)$", re.MULTILINE)
_SECTION: Final = re.compile(r"^\d+ requirements: \d+ work, \d+ in part, \d+ open\.$", re.MULTILINE)
_HEAD: Final = re.compile(r"Of(\s)\d+,(\s)\d+(\s)work,(\s)\d+(\s)work(\s)in(\s)part(\s)and(\s)\d+(\s)are(\s)open")

Marks = Mapping[str, list[str]]
"""The tests of each requirement, in the order of their files and lines."""


def marks_of(tests: Path) -> Marks:
    """Read the marks of all tests below a folder."""
    found: dict[str, list[str]] = {}
    for file in sorted(tests.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if f"@{MARK}(" in text:
            for name, id_ in _marked(ast.parse(text)):
                found.setdefault(id_, []).append(f"{file.relative_to(tests.parent).as_posix()}::{name}")
    return found


def _marked(module: ast.Module) -> Iterator[tuple[str, str]]:
    for function in module.body:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in function.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == MARK:
                yield from ((function.name, str(ast.literal_eval(id_))) for id_ in mark.args)


def written(page: str, marks: Marks) -> str:
    """Write the column of tests and every count anew."""
    rows = _ROW.sub(lambda row: _row(row, marks), page)
    sections = re.split(r"^(?=## )", rows, flags=re.MULTILINE)
    counted = "".join(_SECTION.sub(_sum_of(_statuses(section)), section) for section in sections)
    total = _statuses(counted)
    numbers = iter((total.total(), total["works"], total["partly"], total["open"]))
    return _HEAD.sub(lambda head: re.sub(r"\d+", lambda _: str(next(numbers)), head[0]), counted, count=1)


def strangers(page: str, marks: Marks) -> list[str]:
    """Name marks of what is no requirement, or of one that is open."""
    statuses = {id_: status for _, id_, status, _ in _ROW.findall(page)}
    wrong = {
        id_: f"says {status}" if status else "is none"
        for id_ in marks
        if (status := statuses.get(id_)) in (None, "open")
    }
    return [f"{test} shows {id_}, which {why}" for id_, why in wrong.items() for test in marks[id_]]


def _row(row: re.Match[str], marks: Marks) -> str:
    return f"{row[1]} {_cell(marks.get(row[2], ()))} {row[4]}"


def _cell(tests: Iterable[str]) -> str:
    return "<br>".join(f"`{test}`" for test in tests)


def _statuses(text: str) -> Counter[str]:
    return Counter(status for _, _, status, _ in _ROW.findall(text))


def _sum_of(statuses: Counter[str]) -> str:
    of = {status: statuses[status] for status in ("works", "partly", "open")}
    return f"{statuses.total()} requirements: {of['works']} work, {of['partly']} in part, {of['open']} open."


def main() -> None:
    """Write the page."""
    page, marks = PAGE.read_text(encoding="utf-8"), marks_of(ROOT / "tests")
    PAGE.write_text(written(page, marks), encoding="utf-8")
    print("\n".join(strangers(page, marks)), end="")


if __name__ == "__main__":
    main()
