"""``python -m benchmarks.profiled FILE serve …``: Waypost in one process, telling where its CPU time goes.

SIGUSR1 starts the sampling, the next one ends it and writes *FILE*: a JSON object from stacks (``module:function``,
outermost first, separated by ``;``) to CPU seconds. Each 5 ms of CPU time every thread's own clock is read, and what it
spent since is put down to the stack it is on; so what a thread waits, for the interpreter's lock too, is not counted.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType

from waypost.cli import main

EVERY_S = 0.005


class Sampler:
    """CPU seconds by stack, while it is on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._on = False
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._before_s: dict[int, float] = {}

    def switch(self, _signal: int, _frame: FrameType | None) -> None:
        """Start, or end and write."""
        self._on = not self._on
        signal.setitimer(signal.ITIMER_PROF, EVERY_S if self._on else 0, EVERY_S)
        if self._on:
            self._before_s = {thread: _cpu_s(thread) for thread in _threads()}
        else:
            made = self._file.with_suffix(".part")
            made.write_text(json.dumps(self._spent))
            made.rename(self._file)

    def sample(self, _signal: int, frame: FrameType | None) -> None:
        """Put down what each thread spent since the last time."""
        frames: dict[int, FrameType | None] = {**sys._current_frames(), threading.main_thread().ident or 0: frame}
        for thread in _threads():
            now_s = _cpu_s(thread)
            spent_s = now_s - self._before_s.get(thread, now_s)
            if spent_s > 0:
                self._spent[_stack(frames.get(thread))] += spent_s
            self._before_s[thread] = _cpu_s(thread)


def _threads() -> list[int]:
    return [thread.ident for thread in threading.enumerate() if thread.ident is not None]


def _cpu_s(thread: int) -> float:
    return time.clock_gettime(time.pthread_getcpuclockid(thread))


def _stack(frame: FrameType | None) -> str:
    names: list[str] = []
    while frame is not None:
        names.append(f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_name}")
        frame = frame.f_back
    return ";".join(reversed(names))


if __name__ == "__main__":
    sampler = Sampler(Path(sys.argv.pop(1)))
    signal.signal(signal.SIGUSR1, sampler.switch)
    signal.signal(signal.SIGPROF, sampler.sample)
    main()
