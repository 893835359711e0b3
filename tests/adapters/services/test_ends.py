"""No server outlives whoever asked for it, and none needs a certain port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from scripts.services import processes
from scripts.services.redis import Redis
from scripts.services.service import choose_ports, is_free
from scripts.services.shared import ROOT, Shared, kept

OWNER = """
import sys
from scripts.services.shared import Shared, kept
with kept() as base:
    print(Shared(base).need("redis").node(1).pid, flush=True)
    sys.stdin.read()
"""


def test_servers_end_with_the_block_that_keeps_them() -> None:
    """Their data goes too."""
    with kept() as base:
        pid = Shared(base).need("redis").node(1).pid
        assert pid is not None
    assert processes.stat(pid) is None
    assert not base.exists()


def test_servers_end_when_their_owner_is_killed() -> None:
    """As a test run does that a time limit ends with SIGKILL."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid = owner.stdout.readline()
        watched = os.pidfd_open(int(pid))
        owner.send_signal(signal.SIGKILL)
    try:
        assert processes.ended(watched, patience_s=60)
    finally:
        os.close(watched)


def test_two_of_a_kind_run_side_by_side(tmp_path: Path) -> None:
    """Each has found ports of its own."""
    both = [Redis(tmp_path / name) for name in ("one", "other")]
    for each in both:
        each.up()
    try:
        assert all("+PONG" in each.ask(each.node(1), "PING") for each in both)
    finally:
        for each in both:
            each.down()


def test_a_port_that_something_listens_on_is_not_chosen(redis_server: Redis) -> None:
    """Only what is free is given."""
    assert not is_free(redis_server.ports[0])
    assert all(is_free(port) for port in choose_ports(5, None))
