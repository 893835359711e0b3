"""The programs beside the one that is measured: a gateway in the providers' place, and a load generator."""

from __future__ import annotations

import http.client
import json
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waypost.runtime.python import MODULE

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

TAKEN = {"200", "201", "202"}
"""The statuses of what was taken; 200 is for a repeat, where Waypost took it and answered 503 all the same."""
ASKED_AGAIN = {"0", "429", "503"}
"""The statuses of what was asked again; 0 is no answer."""


@dataclass(frozen=True)
class Programs:
    """The commands that start a gateway and a load generator."""

    name: str
    gateway: tuple[str, ...]
    """The command that takes a PEM file with certificate and key, and prints its ports (`GatewayProgram`)."""
    load: tuple[str, ...]
    """The command that takes HOST:PORT, ``name=value …`` and the key as a variable, and prints what it saw (`Load`)."""


OWN = Programs("ours", (*MODULE, "waypost.bench.gateway"), (*MODULE, "waypost.bench.load"))


def cpu_s(pid: int) -> float:
    """Measure CPU seconds of a process so far, in its own code and in the system's, exactly; OSError where it is gone.

    Its CPU clock has the number that clock_getcpuclockid(3) gives; /proc counts in hundredths of a second.
    """
    return time.clock_gettime((~pid << 3) | 2)


def resident_mib(pid: int) -> float:
    """Measure the memory of a process that is resident."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 2**20


def peak_mib(pid: int) -> float:
    """Measure the most memory that was resident of a process so far."""
    (line,) = (each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


class GatewayProgram:
    """A running gateway and its admin port (waypost.bench.gateway says what it answers)."""

    def __init__(self, pid: int, port: int, admin_port: int) -> None:
        self.pid = pid
        self.port = port
        self.url = f"https://127.0.0.1:{port}"
        self._admin = http.client.HTTPConnection("127.0.0.1", admin_port)

    def counts(self) -> dict[str, Any]:
        """Return by class (``apns``, ``fcm``, ``webpush``): accepted, dead, throttled, and distinct deliveries."""
        counts: dict[str, Any] = json.loads(self._ask("/counts"))
        return counts

    def total(self, *kinds: str) -> int:
        """Sum up some counts over all classes."""
        counts = self.counts()
        return sum(counts[name][kind] for name in ("apns", "fcm", "webpush") for kind in kinds)

    def marks(self) -> Iterator[tuple[int, int]]:
        """Yield the mark of each accepted request that had one, and when it came in µs since 1970."""
        return struct.iter_unpack("<QQ", self._ask("/marks"))

    def forget_marks(self) -> None:
        """Forget the marks seen so far."""
        self._ask("/forget")

    def set_latency(self, **by_class: int | str) -> None:
        """Set how many milliseconds an answer of a class takes; ``never`` is a black hole."""
        self._ask("/set?" + "&".join(f"{name}={value}" for name, value in by_class.items()))

    def storm(self, retry_after_s: int) -> None:
        """Answer everything 429 with that Retry-After from now on; with 0, no longer."""
        self._ask(f"/storm?seconds={retry_after_s}")

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def _ask(self, path: str) -> bytes:
        self._admin.request("GET", path)
        answer = self._admin.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the gateway answered {path} with {answer.status}")
        return body


@contextmanager
def gateway(programs: Programs, pem_file: Path) -> Iterator[GatewayProgram]:
    """Run a gateway with the certificate and key of *pem_file*, for as long as the block."""
    process = subprocess.Popen([*programs.gateway, pem_file], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ports = json.loads(process.stdout.readline())
        with closing(GatewayProgram(process.pid, ports["port"], ports["admin"])) as server:
            yield server
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def reached(server: GatewayProgram, wanted: int, timeout_s: float = 300.0) -> int:
    """Wait until the gateway has taken or refused so many for good; how many it has then.

    TimeoutError where nothing comes for so long.
    """
    seen, until = -1, time.monotonic() + timeout_s
    while (total := server.total("accepted", "dead")) < wanted:
        if total != seen:
            seen, until = total, time.monotonic() + timeout_s
        elif time.monotonic() > until:
            raise TimeoutError(f"only {total} of {wanted} deliveries, and nothing for {timeout_s} s")
        time.sleep(0.02)  # asking without pause would take the CPU that is measured
    return total


class Load:
    """A load in progress (waypost.bench.load says what can be asked of it)."""

    def __init__(self, programs: Programs, url: str, key: str, **wishes: object) -> None:
        named = [f"{name}={value}" for name, value in wishes.items()]
        self._process = subprocess.Popen(
            [*programs.load, url.removeprefix("http://"), *named],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"WAYPOST_API_KEY": key},
        )

    @property
    def running(self) -> bool:
        """Whether it still submits."""
        return self._process.poll() is None

    def result(self) -> dict[str, Any]:
        """Return what it saw, once it has ended; RuntimeError where anything was refused for good."""
        before_s = _children_s()
        text, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise RuntimeError(f"the load generator ended with {self._process.returncode}")
        seen: dict[str, Any] = json.loads(text)
        if set(seen["statuses"]) - TAKEN - ASKED_AGAIN:
            raise RuntimeError(f"requests were refused: {seen['statuses']}")
        return seen | {"cpu_s": _children_s() - before_s}

    def stop(self) -> None:
        """Stop it now, whatever it has seen."""
        self._process.kill()
        self._process.communicate()


def _children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system
