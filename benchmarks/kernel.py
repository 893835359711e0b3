"""CPU time of a request through waypost.http2, against h2load's (C) on the same server: the bench's gateway.

The client runs in a process of its own, as Python and, where there is a C compiler, compiled (docs/decisions/0015).
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

from benchmarks.programs import command, in_rust
from scripts.compiled import can_compile, unpacked
from waypost.bench import kernel
from waypost.bench.kernel import BODY, LATENCIES_MS, PATH, REQUESTS, REQUESTS_WHERE_SLOW, ROUNDS, SHAPES, Shape
from waypost.bench.programs import gateway
from waypost.bench.rows import Row, row


def ours(front: Path | None, port: int, cert_file: Path, shape: Shape) -> float:
    """CPU microseconds a request with the kernel as Python, or as *front* has it compiled."""
    environment = os.environ if front is None else os.environ | {"PYTHONPATH": str(front)}
    return kernel.measured(port, cert_file, shape, environment)


def h2load(port: int, shape: Shape) -> float:
    """CPU microseconds a request of h2load with the same load."""
    connections, streams, requests = shape
    with tempfile.NamedTemporaryFile() as body:
        body.write(BODY)
        body.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        load = ["-n", str(requests), "-c", str(connections), "-m", str(streams), "-d", body.name]
        url = f"https://localhost:{port}{PATH}"
        ended = subprocess.run([command("h2load"), *load, url], check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert f" {requests} 2xx" in ended.stdout, ended.stdout
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent / requests * 1e6


def forms(folder: Path) -> dict[str, Path | None]:
    """The kernel as Python, and compiled where it can be: what goes before the path of each."""
    return {"as Python": None} | ({"compiled": unpacked(folder)} if can_compile() else {})


def run() -> list[Row]:
    """Every number of connections at every latency of the server; medians of rounds in turn."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        cert_file, pem_file = kernel.certificates(Path(name))
        fronts = forms(Path(name))
        with gateway(in_rust(), pem_file) as server:
            for latency_ms in LATENCIES_MS:
                server.set_latency(apns=latency_ms)
                for connections, streams in SHAPES:
                    shape = (connections, streams, REQUESTS_WHERE_SLOW if latency_ms else REQUESTS)
                    theirs, found = measured(fronts, server.port, cert_file, shape)
                    what = f"{connections} × {streams} in flight, answered after {latency_ms} ms"
                    rows += [
                        row("kernel", f"{what}, {form}", us, "µs CPU a request", f"h2load {theirs:.2f}", us / theirs)
                        for form, us in found.items()
                    ]
    return rows


def measured(
    fronts: dict[str, Path | None], port: int, cert_file: Path, shape: Shape
) -> tuple[float, dict[str, float]]:
    """CPU of a request: h2load's, and that of each form of ours."""
    theirs: list[float] = []
    found: dict[str, list[float]] = {form: [] for form in fronts}
    for _ in range(ROUNDS):
        theirs.append(h2load(port, shape))
        for form, front in fronts.items():
            found[form].append(ours(front, port, cert_file, shape))
    return statistics.median(theirs), {form: statistics.median(each) for form, each in found.items()}
