"""CPU time of a request through waypost.http2, against h2load's (C) on the same server: the bench's gateway.

The client runs in a process of its own, as Python and, where there is a C compiler, compiled (docs/decisions/0015).
"""

import asyncio
import datetime
import os
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.programs import command, gateway
from benchmarks.rows import Row, row
from scripts.compiled import ROOT, can_compile, unpacked
from waypost.http2 import Answer, Origin, Pool, PoolSettings, Result, encode_headers

REQUESTS = 40_000
REQUESTS_WHERE_SLOW = 10_000
"""Of a run in which the server takes its time."""
ROUNDS = 3
SHAPES = ((1, 500), (4, 250), (25, 100))
"""Connections, and requests in flight on each."""
LATENCIES_MS = (0, 20, 80)
Shape = tuple[int, int, int]
"""Connections, requests in flight on each, requests in all."""
PATH = "/3/device/0123456789abcdef"
BODY = b"x" * 400


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and its key, as PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file


def certificates(folder: Path) -> tuple[Path, Path]:
    """The certificate alone, for who trusts it, and with its key, for the gateway."""
    cert_file, key_file = certificate(folder)
    both = folder / "both.pem"
    both.write_bytes(cert_file.read_bytes() + key_file.read_bytes())
    return cert_file, both


async def _requests(port: int, trust: ssl.SSLContext, connections: int, streams: int, requests: int) -> float:
    """CPU microseconds a request, connecting included."""
    loop = asyncio.get_running_loop()
    before = time.process_time()
    pool = Pool(
        Origin("127.0.0.1", port, trust, "localhost"),
        PoolSettings(
            min_connections=connections, max_connections=connections, initial_stream_limit=0, max_streams=streams
        ),
    )
    finished = loop.create_future()
    fixed = encode_headers([(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"localhost")])
    head = fixed + encode_headers([(b":path", PATH.encode())])
    sent = ended = 0

    def send() -> None:
        nonlocal sent
        sent += 1
        pool.request(head, BODY, loop.time() + 30, on_result)

    def on_result(result: Result) -> None:
        nonlocal ended
        assert isinstance(result, Answer) and result.status == 200, result
        ended += 1
        if sent < requests:
            send()
        elif ended == requests:
            finished.set_result(None)

    await pool.start()
    for _ in range(connections * streams):
        send()
    await finished
    await pool.close()
    return (time.process_time() - before) / requests * 1e6


def ours(front: Path | None, port: int, cert_file: Path, shape: Shape) -> float:
    """The same in a process of its own: the kernel as Python, or as *front* has it compiled."""
    environment = os.environ if front is None else os.environ | {"PYTHONPATH": str(front)}
    command = [sys.executable, "-m", "benchmarks.kernel", str(port), str(cert_file), *map(str, shape)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    return float(ended.stdout)


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
        cert_file, pem_file = certificates(Path(name))
        fronts = forms(Path(name))
        with gateway(pem_file) as server:
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


if __name__ == "__main__":
    port, connections, streams, requests = (int(sys.argv[n]) for n in (1, 3, 4, 5))
    trust = ssl.create_default_context(cafile=sys.argv[2])
    print(uvloop.run(_requests(port, trust, connections, streams, requests)))
