"""HTTP/2 servers that others wrote: what each needs, how it is built and started."""

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from tests.interop.answering import answer_to

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILT = ROOT / ".cache" / "interop"
PASSWORD = "interop"  # of a key that lives for a test
# Debian hides what administrators run.
SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/go/bin", "/usr/sbin"])


@dataclass(frozen=True)
class Site:
    """What a server is given: a folder of its own, and a certificate for localhost with its key."""

    folder: Path
    cert_file: Path
    key_file: Path


@dataclass(frozen=True)
class Server:
    """One implementation: the commands it needs, how it says its version, how it serves (a port), what it answers."""

    name: str
    commands: tuple[str, ...]
    serve: Callable[[Site], AbstractContextManager[int]]
    answer: Callable[[bytes], bytes] = answer_to
    build: Callable[[], None] = lambda: None

    def missing(self) -> list[str]:
        """The commands that are not installed."""
        return [command for command in self.commands if shutil.which(command, path=SEARCH) is None]


def command(name: str) -> str:
    """Where a program is; FileNotFoundError if nowhere."""
    found = shutil.which(name, path=SEARCH)
    if found is None:
        raise FileNotFoundError(name)
    return found


@contextlib.contextmanager
def running(arguments: Sequence[str | Path], port: int | None = None) -> Iterator[int]:
    """A server while the context is open: the port that it prints, or *port* once it listens there."""
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()) if port is None else _listening(process, port)
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _listening(process: subprocess.Popen[str], port: int) -> int:
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return port
        time.sleep(0.02)  # a foreign server tells nobody when it listens
    raise RuntimeError(f"{process.args!r} ended with {process.returncode}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _filled(template: str, site: Site, **values: object) -> Path:
    text = (HERE / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    filled = site.folder / template
    filled.write_text(text)
    return filled


def _backend() -> AbstractContextManager[int]:
    return running([sys.executable, "-m", "tests.interop.answering", "http1"])


def _nghttpd(site: Site) -> AbstractContextManager[int]:
    port = _free_port()
    options = ["-a", "127.0.0.1", "-d", str(site.folder), "--echo-upload", "--padding=20", "--trailer=a: b"]
    return running([command("nghttpd"), *options, str(port), site.key_file, site.cert_file], port)


def _go_binary() -> Path:
    source = HERE / "go" / "main.go"
    return BUILT / f"go-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"


def _build_go() -> None:
    binary = _go_binary()
    if not binary.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        made = BUILT / f"go-{os.getpid()}"
        subprocess.run([command("go"), "build", "-o", made, "main.go"], cwd=HERE / "go", check=True)
        made.rename(binary)


def _go(site: Site) -> AbstractContextManager[int]:
    return running([_go_binary(), site.cert_file, site.key_file])


def _node(site: Site) -> AbstractContextManager[int]:
    return running([command("node"), HERE / "node" / "server.mjs", site.cert_file, site.key_file])


def _python(site: Site) -> AbstractContextManager[int]:
    return running([sys.executable, "-m", "tests.interop.answering", "h2", site.cert_file, site.key_file])


@contextlib.contextmanager
def _nginx(site: Site) -> Iterator[int]:
    with _backend() as backend:
        port = _free_port()
        names = {"CERT": site.cert_file, "KEY": site.key_file, "FOLDER": site.folder}
        file = _filled("nginx.conf", site, PORT=port, BACKEND=backend, **names)
        with running([command("nginx"), "-e", "stderr", "-p", site.folder, "-c", file], port) as listening:
            yield listening


@contextlib.contextmanager
def _haproxy(site: Site) -> Iterator[int]:
    pem = site.folder / "haproxy.pem"
    pem.write_bytes(site.cert_file.read_bytes() + site.key_file.read_bytes())
    with _backend() as backend:
        port = _free_port()
        file = _filled("haproxy.cfg", site, PORT=port, BACKEND=backend, PEM=pem)
        with running([command("haproxy"), "-q", "-db", "-f", file], port) as listening:
            yield listening


@contextlib.contextmanager
def _h2o(site: Site) -> Iterator[int]:
    with _backend() as backend:
        port = _free_port()
        names = {"CERT": site.cert_file, "KEY": site.key_file}
        file = _filled("h2o.conf", site, PORT=port, BACKEND=backend, **names)
        with running([command("h2o"), "-c", file], port) as listening:
            yield listening


def _build_hyper() -> None:
    subprocess.run(
        [command("cargo"), "build", "--release", "--quiet", "--locked", "--target-dir", BUILT / "hyper"],
        cwd=HERE / "hyper",
        check=True,
    )


def _hyper(site: Site) -> AbstractContextManager[int]:
    return running([BUILT / "hyper" / "release" / "interop-hyper", site.cert_file, site.key_file])


def _build_jetty() -> None:
    maven = [command("mvn"), "--quiet", "--batch-mode", f"-Dbuilddir={BUILT / 'jetty'}", "package"]
    subprocess.run(maven, cwd=HERE / "jetty", check=True)


@contextlib.contextmanager
def _jetty(site: Site) -> Iterator[int]:
    key = serialization.load_pem_private_key(site.key_file.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    store = site.folder / "jetty.p12"
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"interop",
            key,
            x509.load_pem_x509_certificate(site.cert_file.read_bytes()),
            None,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    built = BUILT / "jetty"
    classes = os.pathsep.join([str(built / "classes"), str(built / "dependency" / "*")])
    with ExitStack() as stack:
        yield stack.enter_context(running([command("java"), "-cp", classes, "Interop", store, PASSWORD]))


ORDINARY = (
    Server("nghttpd", ("nghttpd",), _nghttpd, answer=bytes),
    Server("Go net/http", ("go",), _go, build=_build_go),
    Server("nginx", ("nginx",), _nginx),
    Server("h2o", ("h2o",), _h2o),
    Server("Node http2", ("node",), _node),
    Server("Python h2", (), _python),
)
LARGE = (
    Server("Rust hyper", ("cargo",), _hyper, build=_build_hyper),
    Server("Jetty", ("mvn", "java"), _jetty, build=_build_jetty),
    Server("HAProxy", ("haproxy",), _haproxy),
)
