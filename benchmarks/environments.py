"""What the peers run in: an environment of their own with pinned packages, and a Go program with pinned modules."""

from __future__ import annotations

import hashlib
import subprocess
import venv
from pathlib import Path

from benchmarks.programs import BUILT, command

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "peers.txt"
VENV = BUILT / "peers"
PYTHON = VENV / "bin" / "python"
GO_SOURCE = Path(__file__).parent / "peer_programs" / "go"


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
