"""Which promises a test needs, and on which engines it therefore runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from tests.memory.work import MemoryWork
from waypost.ports.promises import Promise
from waypost.stores.kafka.promises import KEPT as KEPT_BY_LOG
from waypost.stores.sql.claims.work import ClaimedWork
from waypost.stores.sql.work import SqlWork

ENGINES: Final[Mapping[str, frozenset[Promise]]] = {
    "memory": MemoryWork.promises,
    "sqlite": SqlWork.promises,
    "postgres": ClaimedWork.promises,
    "handed over": ClaimedWork.promises,
    "log": KEPT_BY_LOG,
}
"""What each engine keeps of what is promised of ``Work``."""
STORES: Final = ("memory", "sqlite", "postgres", "handed over")
"""Engines on which the suites of the other ports run, too."""
FEEDS: Final = ("copied",)
"""Engines on which the suite of ``Feed`` runs, too: its lists come from Cassandra."""
APART: Final = ("handed over",)
"""Engines that differ from a store in nothing but that routing is apart from sending."""
IN_MEMORY_OR_FILE: Final = ("memory", "sqlite")
"""Engines without a server."""


def promise(*needed: Promise) -> pytest.MarkDecorator:
    """Name what a test of ``Work`` needs; those of its module count as well."""
    return pytest.mark.promise(*needed)


def needed_by(metafunc: pytest.Metafunc) -> frozenset[Promise]:
    """Name every promise that a test needs."""
    return frozenset(each for mark in metafunc.definition.iter_markers("promise") for each in mark.args)
