"""Make `.venv` hold exactly what requirements/dev.txt pins, and Waypost itself; do nothing when it already does.

Runs on the system's Python with the standard library alone. Started twice at once, the second waits for the first.
"""

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".installed"
LOCK = ROOT / ".venv.lock"
PINS = ROOT / "requirements" / "dev.txt"
OLDEST_PYTHON = (3, 11)


def main() -> None:
    """Install when the pins or the package's metadata changed since the last time."""
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        sys.exit(
            f"Waypost needs Python {wanted} or newer; this is {sys.version.split()[0]}. Try: make PYTHON=python3.12"
        )
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = fingerprint()
        if STAMP.exists() and STAMP.read_text() == wanted:
            return
        version = sys.version.split()[0]
        print(f"Installing into .venv for Python {version} (one to three minutes the first time) ...", flush=True)
        started = time.monotonic()
        make_environment()
        install()
        STAMP.write_text(wanted)
        print(f"Installed in {time.monotonic() - started:.0f} s.", flush=True)


def fingerprint() -> str:
    """Say in one line what the environment must have been made from."""
    made_from = [PINS, ROOT / "pyproject.toml"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in made_from))
    return f"{this_python()}, {digest.hexdigest()}\n"


def this_python() -> str:
    """Name this interpreter: two of one version may be built differently, and one of them is slower."""
    return f"{sys.version.split()[0]} in {sys.base_prefix}"


def make_environment() -> None:
    """Create `.venv` if it is missing or was made for another Python or another place."""
    if works():
        return
    if importlib.util.find_spec("ensurepip") is None:
        install_venv_module()
    run([sys.executable, "-m", "venv", "--clear", str(VENV)])


def works() -> bool:
    """Tell whether `.venv` was made by this Python and has a pip that starts from here."""
    python = VENV / "bin" / "python"
    pip = VENV / "bin" / "pip"
    if not (python.exists() and pip.exists() and str(VENV) in pip.read_text(errors="replace").splitlines()[0]):
        return False
    asked = subprocess.run(
        [python, "-c", "import sys, pip; print(sys.version.split()[0], 'in', sys.base_prefix)"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() == this_python()


def install_venv_module() -> None:
    """Debian ships Python without ensurepip: fetch it as root, otherwise say how."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() != 0:
        sys.exit(f"This Python cannot make a virtual environment. Run: sudo apt-get install {package}")
    run(["apt-get", "update", "-qq"])
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package])


def install() -> None:
    """Install the pins, each checked against its hash, then Waypost from this tree."""
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    run([*pip, "--require-hashes", "-r", str(PINS)])
    run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])


def run(command: list[str]) -> None:
    """Run one step of the installation; its failure ends the whole with its own message."""
    ended = subprocess.run(command, check=False)
    if ended.returncode != 0:
        sys.exit(f"Installation failed: {' '.join(command[:4])} ... ended with {ended.returncode}.")


if __name__ == "__main__":
    main()
