"""Whether the machine is so crowded that a share of it says nothing about the product."""

from __future__ import annotations

import os
from typing import Final

MOST_WAITING: Final = 4
"""Processes that run or wait for each core; the tests alone have two or three."""


def is_crowded() -> bool:
    """Tell whether others took most of the machine in the last minute."""
    return os.getloadavg()[0] > MOST_WAITING * (os.cpu_count() or 1)
