"""CPU time of a request through waypost.http2, in a process of its own."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from waypost.bench.machine import calibration_us
from waypost.bench.programs import GatewayProgram, Programs, cpu_s, gateway
from waypost.bench.rows import Row, row
from waypost.http2 import COMPILED, Answer, Origin, Pool, PoolSettings, Result, encode_headers
from waypost.runtime.python import MODULE

REQUESTS = 40_000
REQUESTS_WHERE_SLOW = 10_000
"""Requests of a run in which the server takes its time."""
ROUNDS = 3
SHAPES = ((1, 500), (4, 250), (25, 100))
"""Connections, and requests in flight on each."""
LATENCIES_MS = (0, 20, 80)
Shape = tuple[int, int, int]
"""Connections, requests in flight on each, requests in all."""
PATH = "/3/device/0123456789abcdef"
BODY = b"x" * 400


def run(programs: Programs, requests: int) -> list[Row]:
    """Measure each number of connections against a server that answers at once; medians of rounds in turn."""
    form, loop_us = "compiled" if COMPILED else "as Python", calibration_us()
    with tempfile.TemporaryDirectory() as name:
        cert_file, pem_file = certificates(Path(name))
        with gateway(programs, pem_file) as server:
            seen: dict[Shape, list[tuple[float, float]]] = {}
            for _ in range(ROUNDS):
                for connections, streams in SHAPES:
                    shape = (connections, streams, requests)
                    seen.setdefault(shape, []).append(_beside(server, cert_file, shape))
    rows: list[Row] = []
    for shape, rounds in seen.items():
        own_us, gateway_us = (statistics.median(each) for each in zip(*rounds, strict=True))
        what = f"{shape[0]} × {shape[1]} in flight, {form}"
        against = f"loop {loop_us:.1f}; gateway {programs.name} {gateway_us:.1f}"
        rows.append(row("kernel", what, own_us, "µs CPU a request", against, own_us / loop_us))
    return rows


def _beside(server: GatewayProgram, cert_file: Path, shape: Shape) -> tuple[float, float]:
    before_s = cpu_s(server.pid)
    own_us = measured(server.port, cert_file, shape)
    return own_us, (cpu_s(server.pid) - before_s) / shape[2] * 1e6


def measured(port: int, cert_file: Path, shape: Shape, environment: Mapping[str, str] = os.environ) -> float:
    """Measure CPU microseconds a request in a process of its own, connecting included."""
    command = [*MODULE, "waypost.bench.kernel", str(port), str(cert_file), *map(str, shape)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(ended.stdout)


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a self-signed certificate for localhost and its key, as PEM files."""
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
    """Make the certificate alone, for who trusts it, and with its key, for the gateway."""
    cert_file, key_file = certificate(folder)
    both = folder / "both.pem"
    both.write_bytes(cert_file.read_bytes() + key_file.read_bytes())
    return cert_file, both


async def _requests(port: int, trust: ssl.SSLContext, connections: int, streams: int, requests: int) -> float:
    """Measure CPU microseconds a request, connecting included."""
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


if __name__ == "__main__":
    port, connections, streams, requests = (int(sys.argv[n]) for n in (1, 3, 4, 5))
    trust = ssl.create_default_context(cafile=sys.argv[2])
    print(uvloop.run(_requests(port, trust, connections, streams, requests)))
