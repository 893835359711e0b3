"""The machine beside a bench: how fast its interpreter is, how that was built, and what others took meanwhile."""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
import time
from pathlib import Path
from typing import Final, TypedDict

from waypost.bench.programs import TICK_S

CORES: Final = os.cpu_count() or 1
_TURNS: Final = 500
"""Few: so short a time is sometimes undisturbed, however much else the machine does."""
_CHUNKS: Final = 8


class Machine(TypedDict):
    """The machine that a bench ran on."""

    cpu: str
    cores: int
    interpreter: str
    kernel: str


def machine() -> Machine:
    """Describe this machine."""
    return Machine(cpu=_cpu(), cores=CORES, interpreter=interpreter(), kernel=platform.release().partition("-")[0])


def interpreter() -> str:
    """Name the interpreter and how it was built: without a profile (PGO) it is 1.3 times slower.

    Distributions build with one and leave that out of what sysconfig tells.
    """
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.base_prefix == "/usr":
        return f"{name}, as the distribution builds it"
    asked = " ".join(str(sysconfig.get_config_var(name) or "") for name in ("CONFIG_ARGS", "PY_CORE_CFLAGS"))
    pgo = "PGO" if "--enable-optimizations" in asked or "-fprofile-use" in asked else "no PGO"
    lto = "LTO" if "--with-lto" in asked or "-flto" in asked else "no LTO"
    return f"{name}, {pgo}, {lto}"


def calibration_us() -> float:
    """Measure the CPU of a turn of a loop that does what interpreters do, the least of some chunks of it."""
    return min(_chunk_us() for _ in range(_CHUNKS))


def _chunk_us() -> float:
    """Measure dictionaries, text, JSON, calls."""
    before = time.thread_time()
    for n in range(_TURNS):
        record = {"user_id": f"user-{n}", "title": "Your parcel is here", "data": {"mark": str(n), "parts": [n, n + 1]}}
        read = json.loads(json.dumps(record))
        assert read["data"]["parts"][1] == n + 1
    return (time.thread_time() - before) / _TURNS * 1e6


class Meanwhile:
    """The time from now on: what others take in it, and how fast the interpreter is before and after."""

    def __init__(self) -> None:
        self._loop_us = calibration_us()
        self._busy_s, self._ours_s, self._began_s = busy_s(), ours_s(), time.perf_counter()

    def seconds(self) -> float:
        """Measure the time until now."""
        return time.perf_counter() - self._began_s

    def others(self) -> float:
        """Measure the share of the machine that others took until now; what we started must have ended."""
        taken_s = busy_s() - self._busy_s - (ours_s() - self._ours_s)
        return max(0.0, taken_s) / self.seconds() / CORES

    def loop_us(self) -> float:
        """Return the mean of a turn of the loop before and now."""
        return (self._loop_us + calibration_us()) / 2


def busy_s() -> float:
    """Measure the CPU seconds of the whole machine so far, with what its host took away."""
    user, nice, system, _idle, _wait, irq, softirq, stolen, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + stolen) * TICK_S


def ours_s() -> float:
    """Measure the CPU seconds so far of this process and of all that it started and has seen end."""
    return sum(os.times()[:4])


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
