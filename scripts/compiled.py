"""The HTTP/2 kernel as C, made by mypyc of its own typed source (docs/decisions/0015), in a wheel.

A wheel is pure Python unless WAYPOST_COMPILE=1 is set where it is built; then it is one for this Python and platform.
The modules stay in it as source beside what was made of them.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT: Final = Path(__file__).resolve().parent.parent
KERNEL: Final = ROOT / "src" / "waypost" / "http2"
CACHE: Final = ROOT / ".cache" / "compiled"
SWITCH: Final = "WAYPOST_COMPILE"

# What happens once a connection, in tasks, gains nothing.
LEFT_AS_PYTHON: Final = frozenset({"__init__.py", "attempts.py", "dial.py", "eyeballs.py", "proxy.py"})
# What the compiled kernel is held to: all that its source is.
WHOLE: Final = ("tests/unit/http2", "tests/adapters/http2", "tests/adapters/senders")


class KernelHook(BuildHookInterface[Any]):
    """Puts the compiled kernel into a wheel that is asked for with it."""

    def dependencies(self) -> list[str]:
        """What an isolated build needs for that, as `requirements/dev.txt` pins it."""
        return compilers() if asked_for() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add what was compiled; an editable installation stays pure, so that edits count."""
        if version == "editable" or not asked_for():
            return
        made = compiled()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"] |= {
            str(path): str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()
        }


def asked_for() -> bool:
    """Whether this build shall be a compiled one."""
    return os.environ.get(SWITCH) == "1"


def can_compile() -> bool:
    """Whether there are a C compiler and this Python's headers (Debian: build-essential, python3-dev)."""
    return shutil.which("cc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()


def compilers() -> list[str]:
    """What makes C of Python, and an extension module of that, as they are pinned."""
    pins = (ROOT / "requirements" / "dev.txt").read_text()
    return re.findall(r"^(?:mypy|setuptools)==\S+", pins, re.MULTILINE)


def sources() -> list[Path]:
    """The modules that are compiled."""
    return sorted(path for path in KERNEL.glob("*.py") if path.name not in LEFT_AS_PYTHON)


def compiled() -> Path:
    """A folder with the extension modules of today's source, laid out as in a wheel; made where it is missing."""
    digest = hashlib.sha256(" ".join([sys.version, *compilers()]).encode())
    for path in [Path(__file__), *sources()]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    made = CACHE / digest.hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # who comes second waits, and finds it made
        if not made.exists():
            for outdated in CACHE.glob("*/"):
                shutil.rmtree(outdated)
            with tempfile.TemporaryDirectory() as scratch:
                _compile(Path(scratch))
                shutil.copytree(Path(scratch) / "lib", CACHE / "half")
            (CACHE / "half").replace(made)
    return made


def _compile(scratch: Path) -> None:
    """Leave extension modules in `lib`; SystemExit with the compiler's words where it fails."""
    from mypyc.build import mypycify  # noqa: PLC0415 - a pure wheel is built without it
    from setuptools import Distribution  # noqa: PLC0415 - as above

    options = [f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={scratch / 'mypy'}"]
    extensions = mypycify(
        [*options, *map(str, sources())],
        target_dir=str(scratch / "c"),
        group_name="waypost_http2",
        debug_level="0",
    )
    command = Distribution({"name": "waypost", "ext_modules": extensions}).get_command_obj("build_ext")
    command.build_lib = str(scratch / "lib")
    command.build_temp = str(scratch / "o")
    command.ensure_finalized()
    command.run()


def unpacked(folder: Path) -> Path:
    """Unpack Waypost with its kernel compiled, and the lab, in *folder*; return the front of PYTHONPATH."""
    for source in (ROOT, ROOT / "packaging" / "lab"):
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
        ended = subprocess.run(build, env=os.environ | {SWITCH: "1"}, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise RuntimeError(f"no compiled wheel: {ended.stdout[-3000:]}{ended.stderr[-3000:]}")
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def held_to(front: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run *tests* on what `unpacked` gave, in a process that knows nothing of a pytest around it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(front)
    certain = (
        "from waypost.http2 import COMPILED as yes; import pytest, sys; sys.exit(pytest.main() if yes else 'pure!')"
    )
    command = [sys.executable, "-c", certain, "-q", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def main() -> None:
    """Build the wheel into dist/ and hold it to all that its kernel is held to as Python; ``--keep`` only compiles."""
    if "--keep" in sys.argv:
        if can_compile():
            compiled()
        return
    with tempfile.TemporaryDirectory() as scratch:
        front = unpacked(Path(scratch))
        ended = held_to(front, ["-n", "2", "--dist", "loadfile", *WHOLE])
        print(ended.stdout)
        if ended.returncode != 0:
            sys.exit("the compiled kernel does not pass")
        (wheel,) = Path(scratch).glob("waypost-*.whl")
        (ROOT / "dist").mkdir(exist_ok=True)
        print(shutil.copy(wheel, ROOT / "dist"))


if __name__ == "__main__":
    main()
