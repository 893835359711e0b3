"""The promises of each stack, and whether the chosen one keeps those that are required."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from waypost.config import Config, Stack
from waypost.domain.errors import ConfigurationError
from waypost.ports.promises import Promise
from waypost.stores.kafka.promises import INSTEAD as INSTEAD_ON_LOG


def lacks_of(stack: Stack) -> Mapping[Promise, str]:
    """Name each promise that *stack* lacks, with what happens there instead."""
    match stack:
        case Stack.EMBEDDED:
            return {}
        case Stack.LOG:
            return INSTEAD_ON_LOG
        case _:
            assert_never(stack)


def check_required(config: Config) -> None:
    """See that the chosen stack keeps each promise that is required of it; else ConfigurationError."""
    lacks = lacks_of(config.stack)
    for promise in config.requires:
        if promise in lacks:
            raise ConfigurationError("requires", f"the {config.stack} stack lacks {promise}: {lacks[promise]}")
