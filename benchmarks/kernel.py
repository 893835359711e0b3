"""CPU time of a request through waypost.http2, against h2load's on the same server: one TLS connection, 500 in flight.

Needs nghttpd and h2load (Debian: nghttp2-server, nghttp2-client), and a C compiler for the compiled form
(docs/decisions/0015). `python -m benchmarks.kernel` prints the table.
"""

import asyncio
import contextlib
import datetime
import os
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks import programs
from scripts.compiled import ROOT, can_compile, unpacked
from waypost.http2 import Answer, Origin, Pool, PoolSettings, Result, encode_headers

REQUESTS = 20_000
ROUNDS = 5
IN_FLIGHT = 500
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


async def _one_run(port: int, trust: ssl.SSLContext) -> float:
    """CPU microseconds a request of `REQUESTS` requests."""
    loop = asyncio.get_running_loop()
    pool = Pool(
        Origin("127.0.0.1", port, trust, "localhost"),
        PoolSettings(max_connections=1, initial_stream_limit=0, max_streams=IN_FLIGHT),
    )
    finished = loop.create_future()
    fixed = encode_headers([(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"localhost")])
    sent = 0
    ended = 0

    def send() -> None:
        nonlocal sent
        sent += 1
        head = fixed + encode_headers([(b":path", b"/index.html")])
        pool.request(head, BODY, loop.time() + 30, on_result)

    def on_result(result: Result) -> None:
        nonlocal ended
        assert isinstance(result, Answer) and result.status == 200, result
        ended += 1
        if sent < REQUESTS:
            send()
        elif ended == REQUESTS:
            finished.set_result(None)

    await pool.start()
    send()
    while not ended:  # noqa: ASYNC110 - the first answer is counted by a callback
        await asyncio.sleep(0.01)
    before = time.process_time()
    for _ in range(IN_FLIGHT):
        send()
    await finished
    spent = time.process_time() - before
    await pool.close()
    return spent / REQUESTS * 1e6


def _h2load(port: int) -> float:
    """CPU microseconds a request of h2load with the same load."""
    with tempfile.NamedTemporaryFile() as body:
        body.write(BODY)
        body.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [programs.command("h2load"), "-n", str(REQUESTS), "-c", "1", "-m", str(IN_FLIGHT), "-d", body.name]
        subprocess.run([*command, f"https://localhost:{port}/index.html"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent / REQUESTS * 1e6


@contextlib.contextmanager
def nghttpd(folder: Path, cert_file: Path, key_file: Path, *options: str) -> Iterator[int]:
    """Serve the files of *folder* while the context is open; the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [
        programs.command("nghttpd"),
        "-a",
        "127.0.0.1",
        "-d",
        str(folder),
        *options,
        str(port),
        str(key_file),
        str(cert_file),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _await_listening(port)
        yield port
    finally:
        server.terminate()
        server.wait()


def _await_listening(port: int) -> None:
    for _ in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError("nghttpd does not listen")


def _ours(port: int, cert_file: Path, front: Path | None) -> float:
    """The same of `waypost.http2` in a process of its own: as Python, or as *front* has it compiled."""
    environment = os.environ if front is None else os.environ | {"PYTHONPATH": str(front)}
    command = [sys.executable, "-m", "benchmarks.kernel", str(port), str(cert_file)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    return float(ended.stdout)


def run() -> list[dict[str, object]]:
    """Measure them in turn; the medians. MissingProgram where nghttpd or h2load is not installed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cert_file, key_file = certificate(folder)
        (folder / "index.html").write_bytes(b"ok")
        fronts: dict[str, Path | None] = {"as Python": None}
        if can_compile():
            fronts["compiled"] = unpacked(folder)
        ours: dict[str, list[float]] = {form: [] for form in fronts}
        theirs: list[float] = []
        with nghttpd(folder, cert_file, key_file, "-m", str(IN_FLIGHT)) as port:
            for _ in range(ROUNDS):
                theirs.append(_h2load(port))
                for form, front in fronts.items():
                    ours[form].append(_ours(port, cert_file, front))
    against = statistics.median(theirs)
    return [_row(form, statistics.median(found), against) for form, found in ours.items()]


def _row(form: str, value: float, against: float) -> dict[str, object]:
    return {
        "bench": "kernel",
        "name": f"one TLS connection, 400-byte bodies, {form}",
        "value": round(value, 2),
        "unit": "µs CPU a request",
        "against": f"h2load {against:.2f}",
        "ratio": round(value / against, 2),
    }


def main() -> None:
    """Print the table; with a port and a certificate, one measurement of the kernel as it is imported."""
    if len(sys.argv) > 1:
        print(uvloop.run(_one_run(int(sys.argv[1]), ssl.create_default_context(cafile=sys.argv[2]))))
        return
    for row in run():
        print(row)


if __name__ == "__main__":
    main()
