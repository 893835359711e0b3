"""The kernel must stay near what C needs for the same: a ratio of CPU times of one run, never a time."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from benchmarks import bounds, kernel
from benchmarks.programs import SEARCH
from tests.interop.servers import command, running
from tests.tables import AddRow
from waypost.bench.kernel import PATH, certificate

ROUNDS = 3
SHAPE = (1, 500, 10_000)


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
        rounds = [(kernel.ours(None, port, cert_file, SHAPE), kernel.h2load(port, SHAPE)) for _ in range(ROUNDS)]
    ours, theirs = (min(each) for each in zip(*rounds, strict=True))
    table("CPU of a request", ours_us=f"{ours:.1f}", h2load_us=f"{theirs:.1f}", ratio=f"{ours / theirs:.2f}")
    assert bounds.KERNEL * bounds.FLOOR < ours / theirs < bounds.KERNEL
