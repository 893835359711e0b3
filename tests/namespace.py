"""A network namespace for a process: it reaches the servers on the loopback by one link, which a test can cut."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

OUTSIDE: Final = "10.213.77.1"
INSIDE: Final = "10.213.77.2"
"""The address of what runs in the namespace: it has no loopback of its own, since all of that is beyond the link."""


class Namespace:
    """One with a link; there may be one at a time on a machine."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._link = f"{name}-out"

    @property
    def prefix(self) -> list[str]:
        """What a command begins with that is to run in it."""
        return ["ip", "netns", "exec", self._name]

    def cut(self) -> None:
        """From here on every packet is lost, either way; connections hear nothing of it."""
        _run(f"ip link set {self._link} down")

    def mend(self) -> None:
        """What is sent from here on arrives."""
        _run(f"ip link set {self._link} up")


@contextmanager
def linked() -> Iterator[Namespace]:
    """A namespace with a link, for the time of the block; only root may, where it may make one."""
    name = f"wp{uuid.uuid4().hex[:8]}"
    if os.geteuid() != 0 or subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode:
        why = "a network namespace takes root, iproute2 and a system that lets it"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    made = Namespace(name)
    try:
        _run(f"ip link add {name}-out type veth peer name {name}-in netns {name}")
        _run(f"ip addr add {OUTSIDE}/30 dev {name}-out")
        made.mend()
        _run(f"sysctl -q -w net.ipv4.conf.{name}-out.route_localnet=1")  # or 127.0.0.1 is refused on other links
        inside = " ".join(made.prefix)
        _run(f"{inside} sysctl -q -w net.ipv4.conf.{name}-in.route_localnet=1")
        _run(f"{inside} ip addr add {INSIDE}/30 dev {name}-in")
        _run(f"{inside} ip link set {name}-in up")
        _run(f"{inside} ip route add 127.0.0.0/8 via {OUTSIDE} src {INSIDE}")
        yield made
    finally:
        _run(f"ip netns delete {name}")  # its end of the link, and so the link, goes with it


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)
