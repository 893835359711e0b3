"""Pages that name tests are held to the code: every id once, nothing named that is not there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts import requirements

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "internals" / "requirements.md"
GUARANTEES = ROOT / "docs" / "guarantees.md"

LAST_OF_SERIES = {"S0": 35, "S1": 149, "S2": 39, "S3": 136, "S4": 77}
"""The ids run from 1 to these."""
STATUSES = {"works", "partly", "open"}
OWNERS = {
    "protocols",
    "speed & bulk",
    "scale-out",
    "entry points",
    "identity & limits",
    "feed & other channels",
    "preferences & schedules",
    "observability",
    "retention",
}
"""The later pieces of work."""

ROW = re.compile(r"^\| (S\d-\d{2,3}) \| (.+?) \| (\w+) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
SECTION = re.compile(r"^(\d+) requirements: (\d+) work, (\d+) in part, (\d+) open\.$", re.MULTILINE)


class Row(NamedTuple):
    """One requirement as the page has it."""

    id: str
    what: str
    status: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    note: str


def rows(text: str) -> list[Row]:
    """Every row of the page."""
    return [
        Row(id_, what, status, _quoted(modules), _quoted(tests), note.strip())
        for id_, what, status, modules, tests, note in ROW.findall(text)
    ]


def complaints(text: str) -> Iterator[str]:
    """Everything that is wrong with the page."""
    found = rows(text)
    counts = Counter(row.id for row in found)
    for series, last in LAST_OF_SERIES.items():
        for id_ in (f"{series}-{n:02}" for n in range(1, last + 1)):
            if counts.pop(id_, 0) != 1:
                yield f"{id_} is there {Counter(row.id for row in found)[id_]} times"
    yield from (f"{id_} is no requirement" for id_ in counts)
    for row in found:
        yield from (f"{row.id}: {what}" for what in _wrong(row))
    yield from _miscounted(text, found)


def _wrong(row: Row) -> Iterator[str]:
    if row.status not in STATUSES:
        yield f"the status {row.status} is not one of {sorted(STATUSES)}"
    if row.status == "open":
        if row.note not in OWNERS:
            yield f"nobody is named {row.note!r}"
        if row.modules or row.tests:
            yield "an open requirement has no module and no test yet"
        return
    if not row.modules or not row.tests:
        yield "names no module or no test"
    if (row.status == "partly") != bool(row.note):
        yield "what is in part says what is missing, what works says nothing"
    if row.status == "partly" and not any(row.note.endswith(f": {owner}") for owner in OWNERS):
        yield "ends with the work that brings the rest"
    yield from (f"no module {module}" for module in row.modules if not _is_module(module))
    yield from (f"no test {test}" for test in row.tests if not _is_test(test))


def _miscounted(text: str, found: list[Row]) -> Iterator[str]:
    total = Counter(row.status for row in found)
    said = re.search(r"Of (\d+), (\d+) work, (\d+) work in part and (\d+) are open", " ".join(text.split()))
    counted = (len(found), total["works"], total["partly"], total["open"])
    if said is None or tuple(map(int, said.groups())) != counted:
        yield f"the head should say {counted}"
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        of_section = Counter(row.status for row in rows(section))
        counted = (of_section.total(), of_section["works"], of_section["partly"], of_section["open"])
        match = SECTION.search(section)
        if of_section and (match is None or tuple(map(int, match.groups())) != counted):
            yield f"{section.splitlines()[0]} should say {counted}"


def _quoted(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def _is_module(name: str) -> bool:
    if name.startswith("sdk/"):  # of the web client: a file
        return (ROOT / name).is_file()
    path = ROOT / "src" / Path(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _is_test(name: str) -> bool:
    file, _, function = name.partition("::")
    return function.startswith("test_") and function in _functions(ROOT / file)


@cache
def _functions(file: Path) -> frozenset[str]:
    """The tests of a file, by their names; a parametrised one has a single name."""
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_page_says_what_is_there() -> None:
    """Each id in one row; each named module and test exists; the counts are right."""
    found = "\n".join(complaints(PAGE.read_text(encoding="utf-8")))
    assert not found, f"docs/internals/requirements.md:\n{found}"


def test_every_guarantee_names_tests_that_there_are() -> None:
    """docs/guarantees.md: no promise without a test."""
    promises = re.findall(r"^\| ([A-Z`].+?) \| (.+?) \|$", GUARANTEES.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(promises) > 10
    assert [
        (said, test) for said, tests in promises for test in _quoted(tests) or ("none",) if not _is_test(test)
    ] == []


MODULE, TEST = "`waypost.domain.retry`", "`tests/architecture/test_requirements.py::test_the_page_says_what_is_there`"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (f"| S1-01 | x | works | {MODULE} | {TEST} |  |", None),
        (f"| S1-01 | x | partly | {MODULE} | {TEST} | all of it: entry points |", None),
        ("| S1-01 | x | open |  |  | entry points |", None),
        (f"| S1-01 | x | done | {MODULE} | {TEST} |  |", "the status done"),
        (f"| S1-01 | x | works | {MODULE} |  |  |", "names no module or no test"),
        (f"| S1-01 | x | works | `waypost.domain.nothing` | {TEST} |  |", "no module waypost.domain.nothing"),
        (f"| S1-01 | x | works | {MODULE} | `tests/nothing.py::test_x` |  |", "no test tests/nothing.py::test_x"),
        (f"| S1-01 | x | works | {MODULE} | {TEST[:-1]}_at_all` |  |", "no test tests/architecture"),
        (f"| S1-01 | x | partly | {MODULE} | {TEST} |  |", "says what is missing"),
        (f"| S1-01 | x | partly | {MODULE} | {TEST} | later |", "ends with the work"),
        ("| S1-01 | x | open |  |  | soon |", "nobody is named 'soon'"),
        (f"| S1-01 | x | open |  | {TEST} | entry points |", "has no module and no test yet"),
    ],
)
def test_a_row_that_is_wrong_is_found(row: str, complaint: str | None) -> None:
    """A check that finds nothing would prove nothing."""
    (read,) = rows(row)
    found = list(_wrong(read))
    assert (not found) if complaint is None else any(complaint in each for each in found), found


def test_an_id_that_is_missing_double_or_unknown_is_found() -> None:
    """By the id, wherever it stands."""
    page = "\n".join(f"| {id_} | x | open |  |  | entry points |" for id_ in ("S1-01", "S1-01", "S9-01"))
    found = list(complaints(page))
    assert {"S1-01 is there 2 times", "S0-01 is there 0 times", "S9-01 is no requirement"} <= set(found)


PAGE_BY_HAND = f"""\
Of 1, 1 work, 1 work in part
and 1 are open.

## One

9 requirements: 9 work, 9 in part, 9 open.

| S1-02 | x | works | {MODULE} | `tests/old.py::test_x` |  |
| S1-03 | y | open |  |  | entry points |
"""


def test_what_tests_show_is_read_from_their_marks_and_written_with_the_counts(tmp_path: Path) -> None:
    """What is by hand stays as it is; an open requirement and an unknown one have no test."""
    folder = tmp_path / "tests" / "unit"
    folder.mkdir(parents=True)
    (folder / "test_b.py").write_text('@shows("S1-02", "S9-01")\nasync def test_two() -> None: ...\n')
    (folder / "test_a.py").write_text('@pytest.mark.x\n@shows("S1-02")\ndef test_one() -> None: ...\n')
    marks = requirements.marks_of(tmp_path / "tests")
    one, two = "tests/unit/test_a.py::test_one", "tests/unit/test_b.py::test_two"
    assert marks == {"S1-02": [one, two], "S9-01": [two]}
    page = requirements.written(PAGE_BY_HAND, marks)
    assert page.startswith("Of 2, 1 work, 0 work in part\nand 1 are open.")
    assert "2 requirements: 1 work, 0 in part, 1 open." in page
    assert f"| S1-02 | x | works | {MODULE} | `{one}`<br>`{two}` |  |" in page
    assert "| S1-03 | y | open |  |  | entry points |" in page
    assert requirements.strangers(page, marks) == [f"{two} shows S9-01, which is none"]
    assert requirements.strangers(page, {"S1-03": [one]}) == [f"{one} shows S1-03, which says open"]
    assert requirements.written(page, {}).count("`tests/") == 0


def test_the_page_is_as_it_would_be_written() -> None:
    """By `python -m scripts.requirements`, so that nobody names by hand what no test says of itself."""
    page, marks = PAGE.read_text(encoding="utf-8"), requirements.marks_of(ROOT / "tests")
    assert requirements.written(page, marks) == page
    assert requirements.strangers(page, marks) == []
