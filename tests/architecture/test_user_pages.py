"""Pages for users name no requirement: those are for whoever develops Waypost (docs/internals, docs/decisions)."""

from __future__ import annotations

import re

from tests.architecture.trees import ROOT

REQUIREMENT = re.compile(r"\bS[0-4]-(?:T?\d+)\b")
INNER = {"internals", "decisions"}


def test_no_user_page_names_a_requirement() -> None:
    docs = [page for page in (ROOT / "docs").rglob("*.md") if not INNER & set(page.relative_to(ROOT).parts)]
    assert len(docs) > 20
    found = {page.name: REQUIREMENT.findall(page.read_text()) for page in [*docs, ROOT / "README.md"]}
    assert {name: ids for name, ids in found.items() if ids} == {}
