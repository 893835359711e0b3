"""Tables for people: what is copied from them stays whole on a narrow terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from waypost.cli.printing import table

ID = "01a31819-5000-7123-8456-789abcdef012"


@pytest.mark.parametrize("column", ["notification", "job"])
def test_an_id_is_never_broken(column: str) -> None:
    """Other columns give way."""
    out = io.StringIO()
    Console(file=out, width=60).print(table((column, "app", "why"), [(ID, "demo", "the provider did not answer " * 4)]))
    assert ID in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 60
