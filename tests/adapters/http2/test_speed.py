"""The kernel must stay near what C needs for the same: a ratio of CPU times of one run, never a time."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks import bounds, kernel
from benchmarks.programs import SEARCH
from tests.interop.servers import command, running
from tests.tables import AddRow
from waypost.bench.kernel import PATH, certificate
from waypost.bench.machine import Meanwhile

ROUNDS, MOST_ROUNDS = 3, 9
SHAPE = (1, 500, 10_000)


class Round(NamedTuple):
    """CPU of a request of each, and what others had of the machine meanwhile: the server, too."""

    ours_us: float
    theirs_us: float
    others: float


def test_a_request_costs_a_bounded_multiple_of_what_it_costs_in_c(tmp_path: Path, table: AddRow) -> None:
    """The least of each over rounds in turn: what else the machine does only ever adds."""
    for program in ("nghttpd", "h2load"):
        if shutil.which(program, path=SEARCH) is None:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{program} is not installed")
            pytest.skip(f"{program} is not installed")
    cert_file, key_file = certificate(tmp_path)
    served = tmp_path / PATH.removeprefix("/")
    served.parent.mkdir(parents=True)
    served.write_bytes(b"ok")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server: list[str | Path] = [command("nghttpd"), "-a", "127.0.0.1", "-d", tmp_path, "-m", "500"]
    server += [str(port), key_file, cert_file]
    with running(server, port):
        rounds: list[Round] = []
        while len(rounds) < ROUNDS or (len(rounds) < MOST_ROUNDS and _ratio(rounds) >= _bound(rounds)):
            meanwhile = Meanwhile()
            ours, theirs = kernel.ours(None, port, cert_file, SHAPE), kernel.h2load(port, SHAPE)
            rounds.append(Round(ours, theirs, meanwhile.others()))
    ours, theirs, others = (min(each) for each in zip(*rounds, strict=True))
    table("CPU of a request", ours_us=f"{ours:.1f}", h2load_us=f"{theirs:.1f}", ratio=f"{ours / theirs:.2f}",
          bound=f"{_bound(rounds):.2f}", others=f"{others:.0%}")  # fmt: skip
    assert bounds.KERNEL * bounds.FLOOR < _ratio(rounds) < _bound(rounds)


def _ratio(rounds: list[Round]) -> float:
    return min(each.ours_us for each in rounds) / min(each.theirs_us for each in rounds)


def _bound(rounds: list[Round]) -> float:
    return bounds.bound(bounds.KERNEL, min(each.others for each in rounds))
