"""Which promises a test needs, and on which engines it therefore runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from waypost.adapters.kafka.promises import KEPT as KEPT_BY_LOG
from waypost.adapters.memory.work import MemoryWork
from waypost.adapters.sql.relayed.work import RelayedWork
from waypost.adapters.sql.work import SqlWork
from waypost.ports.promises import Promise

ENGINES: Final[Mapping[str, frozenset[Promise]]] = {
    "memory": MemoryWork.promises,
    "sqlite": SqlWork.promises,
    "postgres": SqlWork.promises,
    "relayed": RelayedWork.promises,
    "handed over": RelayedWork.promises,
    "log": KEPT_BY_LOG,
    "relayed+kafka": RelayedWork.promises,
}
"""What each engine keeps of what is promised of ``Work``."""
STORES: Final = ("memory", "sqlite", "postgres", "relayed", "handed over")
"""Engines on which the suites of the other ports run, too."""
CARRIED: Final = ("relayed", "handed over")
"""Engines that differ from a store in nothing but what ``Work`` promises."""
IN_MEMORY_OR_FILE: Final = ("memory", "sqlite")
"""Engines without a server."""


def promise(*needed: Promise) -> pytest.MarkDecorator:
    """Name what a test of ``Work`` needs; those of its module count as well."""
    return pytest.mark.promise(*needed)


def needed_by(metafunc: pytest.Metafunc) -> frozenset[Promise]:
    """Name every promise that a test needs."""
    return frozenset(each for mark in metafunc.definition.iter_markers("promise") for each in mark.args)
