"""docs/internals/floods.md says of each case what the corpus says, docs/errors.md of each field."""

from __future__ import annotations

import re

from tests.architecture.trees import ROOT
from tests.hostile.corpus import INVALID, JSON, Kept, cases
from tests.hostile.texts import FIELDS, FREE

CASES = (ROOT / "docs" / "internals" / "floods.md").read_text().partition("## What is no submission")[2]
ERRORS = (ROOT / "docs" / "errors.md").read_text()


def test_what_is_no_submission_is_listed_by_its_code() -> None:
    """Each case by its name, no case forgotten."""
    codes = {case.name: case.must.code for case in cases() if not isinstance(case.must, Kept)}
    listed = {name: code for code in (INVALID, JSON) for name in _row(code).split(", ")}
    assert listed == {name: codes.get(name) for name in listed}
    assert {name for name, code in codes.items() if code == JSON} <= listed.keys()


def test_each_field_that_refuses_text_is_listed() -> None:
    """By its name."""
    table = ERRORS.partition("| field | refuses |")[2].partition("Every other text")[0]
    for path, refuses in FIELDS.items():
        assert refuses is FREE or f"`{re.split(r'[.[]', path)[0]}`" in table, path


def _row(code: str) -> str:
    found = re.search(rf"^\| `{code}` \| (.*) \|$", CASES, re.MULTILINE)
    assert found is not None
    return found[1]
