"""The signal SIGHUP, which asks to read credentials and certificates again now."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

STDIN = 0


def hangups_are_heeded() -> bool:
    """Tell whether SIGHUP means reload: in a terminal, which sends it when it is closed, it means the end."""
    return not os.isatty(STDIN)


def heed_hangups(act: Callable[[], None]) -> None:
    """Call *act* in the running loop at each SIGHUP, where it means reload."""
    if hangups_are_heeded():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)
