"""Pages for users name no requirement: those are for whoever develops Waypost (docs/internals, docs/decisions)."""

from __future__ import annotations

import re

from tests.architecture.trees import ROOT

REQUIREMENT = re.compile(r"\bS[0-4]-(?:T?\d+)\b")
INNER = {"internals", "decisions"}


def test_no_user_page_names_a_requirement() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if not INNER & set(page.relative_to(ROOT).parts)]
    assert len(pages) > 20
    named = {
        str(page.relative_to(ROOT)): REQUIREMENT.findall(page.read_text()) for page in [*pages, ROOT / "README.md"]
    }
    assert {page: ids for page, ids in named.items() if ids} == {}
