"""The settings of the interpreter in a process that delivers."""

from __future__ import annotations

import gc
import sys


def share_the_interpreter() -> None:
    """Let the event loop have its turn soon while a writer writes, and look for garbage seldom.

    What exists now stays, and what a delivery makes has no cycles: it goes by itself.
    """
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)
