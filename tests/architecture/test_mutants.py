"""The table of planted faults fits the source as it stands, so that `make mutate` tries every one of them."""

import re
from pathlib import Path

import pytest

from scripts.mutants import PACKAGE, Misfit, Mutant, planted, read_table
from scripts.mutate import report, try_in
from tests.architecture.trees import ROOT

MUTANTS = read_table(ROOT)
LEAST = 60
TEST = re.compile(r"(?P<file>tests/[\w/]+\.py)(::(?P<name>test_\w+)(\[.+\])?)?")


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= LEAST


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_row_fits_the_source_and_names_tests_that_exist(mutant: Mutant) -> None:
    planted(mutant, (ROOT / PACKAGE / mutant.file).read_text())
    assert mutant.why.endswith(".") and mutant.tests
    for test in mutant.tests:
        named = TEST.fullmatch(test)
        assert named is not None, test
        source = (ROOT / named["file"]).read_text()
        assert named["name"] is None or f"def {named['name']}(" in source, test


@pytest.mark.parametrize(
    ("text", "becomes", "inside", "wrong"),
    [
        ("gone()", "pass", "", "stands 0 times"),
        ("again()", "pass", "", "stands 2 times"),
        ("again()", "pass", "Thing.act", "stands 2 times"),
        ("once()", "pass", "other", "has no other"),
        ("once()", "if", "Thing.act", "no Python"),
        ("once()", "once(  )", "", "changes nothing"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error(text: str, becomes: str, inside: str, wrong: str) -> None:
    source = "class Thing:\n    def act(self):\n        again()\n        again()\n        once()\n"
    with pytest.raises(Misfit, match=wrong):
        planted(Mutant("row", "", "thing.py", text, becomes, (), inside), source)


def test_two_rows_of_one_name_are_an_error(tmp_path: Path) -> None:
    table = tmp_path / "tests" / "mutants"
    table.mkdir(parents=True)
    row = '[same]\nwhy = "."\nfile = "a.py"\ntext = "a"\nbecomes = "b"\ntests = []\n'
    for name in ("one", "two"):
        (table / f"{name}.toml").write_text(row)
    with pytest.raises(Misfit, match="two rows"):
        read_table(tmp_path)


def test_what_no_test_notices_has_survived_and_the_tree_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a small tree: one fault that its test notices, one that it does not, and a row that does not fit."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer to load than the tests to run
    package = tmp_path / PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    thing = package / "thing.py"
    source = "def answer():\n    return 42\n\n\ndef other():\n    return 7\n"
    thing.write_text(source)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    test = "from waypost.thing import answer\n\n\ndef test_it():\n    assert answer() == 42\n"
    (tmp_path / "test_thing.py").write_text(test)
    faults = [("42", "41"), ("7", "8"), ("9", "8")]
    rows = [Mutant(text, "Wrong.", "thing.py", text, becomes, ("test_thing.py",)) for text, becomes in faults]
    found = [try_in(tmp_path, row) for row in rows]
    assert [ended.verdict for ended in found] == ["noticed", "survived", "error"]
    assert found[0].by == "test_thing.py::test_it"
    assert [report(found), report(found[:1])] == [1, 0]
    assert thing.read_text() == source
