"""The table of planted faults fits the source as it stands, so that `make mutate` tries every one of them."""

import re
from pathlib import Path

import pytest

from scripts.mutants import PACKAGE, Misfit, Mutant, planted, read_table
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
