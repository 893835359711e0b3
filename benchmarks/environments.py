"""What the peers run in: an environment of their own with pinned packages, a Go program with pinned modules, jars."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import venv
from pathlib import Path

from benchmarks.programs import BUILT, command

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "peers.txt"
VENV = BUILT / "peers"
PYTHON = VENV / "bin" / "python"
GO_SOURCE = Path(__file__).parent / "peer_programs" / "go"
JAVA_SOURCE = Path(__file__).parent / "peer_programs" / "java"
JARS = BUILT / "jars"


def install() -> None:
    """Make the environment when the pins changed."""
    stamp = VENV / ".installed"
    wanted = hashlib.sha256(PINS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    venv.create(VENV, with_pip=True, clear=True)
    pip: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
    ]
    subprocess.run([*pip, "-r", PINS], check=True)
    stamp.write_text(wanted)


def go_program() -> Path:
    """The peers in Go; compiled on first use, and when its source has changed."""
    binary = BUILT / "go-peer"
    subprocess.run([command("go"), "build", "-mod=readonly", "-o", binary, "."], cwd=GO_SOURCE, check=True)
    return binary


def java_program() -> list[str]:
    """How the peer in Java is called; its jars are fetched on first use, and when they have changed."""
    pins, stamp = JAVA_SOURCE / "pom.xml", JARS / "pom.xml"
    if not stamp.exists() or stamp.read_bytes() != pins.read_bytes():
        shutil.rmtree(JARS, ignore_errors=True)
        copy = ("--quiet", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={JARS}")
        subprocess.run([command("mvn"), "--file", pins, *copy], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(pins, stamp)
    return [command("java"), "-cp", f"{JARS}/*", str(JAVA_SOURCE / "PushyPeer.java")]
