"""The settings of the interpreter in a process that delivers."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress


def share_the_interpreter() -> None:
    """Let the event loop have its turn soon while a writer writes, and look for garbage seldom.

    What exists now stays, and what a delivery makes has no cycles: it goes by itself.
    """
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)


def make_way(niceness: int) -> None:
    """Make this thread, and those it starts from now on, nicer; where that is refused (seccomp), they stay as they are.

    The thread that writes was started before (docs/decisions/0092).
    """
    with suppress(OSError):
        os.nice(niceness)
