"""A worker whose event loop makes way."""

from __future__ import annotations

import os

import pytest

from waypost.bootstrap.interpreter import make_way


def test_who_may_not_make_way_works_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter of system calls may refuse it."""
    asked: list[int] = []

    def refused(niceness: int) -> int:
        asked.append(niceness)
        raise PermissionError

    monkeypatch.setattr(os, "nice", refused)
    make_way(5)
    assert asked == [5]
