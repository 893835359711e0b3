"""How much chaos the journeys make."""

from __future__ import annotations

import os
import random

import pytest


@pytest.fixture
def rng() -> random.Random:
    """Chance that can be repeated: the seed is printed when a test fails."""
    seed = int(os.environ.get("WAYPOST_CHAOS_SEED", random.randrange(1 << 32)))
    print(f"WAYPOST_CHAOS_SEED={seed}")
    return random.Random(seed)
