"""The pages of providers, as a newcomer follows them with the lab in a provider's place."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

PAGES = Path(__file__).parents[2] / "docs" / "providers"


def configuration(page: str, files: dict[str, Path]) -> str:
    """Give the configuration of *page*, with *files* in the place of those that it names."""
    text = _block(page, "yaml")
    for named, file in files.items():
        assert named in text, f"{page} names no {named}"
        text = text.replace(named, str(file))
    return text


def first_push(page: str) -> str:
    """Give the commands of *page* that send the first push."""
    return _block(page, "sh")


def _block(page: str, language: str) -> str:
    """Give the first block of *language*."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = re.search(rf"^( *)```{language}\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{page} has no {language}"
    return dedent(found[2])
