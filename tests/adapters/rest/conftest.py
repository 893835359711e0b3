"""Tests of the API on memory and on a file: what SQL gets wrong shows here, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.rest import service
from tests.contract.sql import settings_of
from waypost.bootstrap.features import tables
from waypost.domain.time import Instant
from waypost.stores.sql.database import prepare


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, made once: a copy costs a twentieth."""
    path = tmp_path_factory.mktemp("rest") / "empty.db"
    prepare(settings_of(f"sqlite:///{path}"), Instant(0), tables())
    return path


@pytest.fixture(params=["memory", "sqlite"])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``served`` work on memory, and once more on a file."""
    if request.param == "sqlite":
        monkeypatch.setattr(service, "FILE", request.getfixturevalue("empty_file"))


@pytest.fixture
def on_file(empty_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``served`` work on a file."""
    monkeypatch.setattr(service, "FILE", empty_file)
