"""The bench's own programs, in Rust: a gateway and a load generator that leave the cores to what is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from waypost.bench.programs import Programs

SOURCE = Path(__file__).parent / "gateway"
BUILT = SOURCE.parent.parent / ".cache" / "bench"
_BESIDE_THE_PATH = (str(Path.home() / ".cargo" / "bin"), "/usr/local/go/bin", "/usr/sbin")
SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), *_BESIDE_THE_PATH])
"""Where programs are looked for: cargo and go install themselves there, and Debian hides what administrators run."""


class MissingProgram(Exception):
    """A program that a bench needs is not installed; the text says which."""


def command(name: str) -> str:
    """Where a program is; MissingProgram if nowhere."""
    found = shutil.which(name, path=SEARCH)
    if found is None:
        raise MissingProgram(name)
    return found


@cache
def in_rust() -> Programs:
    """Compiled on first use (a minute or two), and when their source has changed."""
    if subprocess.run([command("cargo"), "--version"], capture_output=True, check=False).returncode != 0:
        raise MissingProgram("a Rust toolchain (`cargo --version` fails)")  # as rustup's does in another home
    cargo = [command("cargo"), "build", "--release", "--quiet", "--locked", "--target-dir", str(BUILT)]
    subprocess.run(cargo, cwd=SOURCE, check=True)
    release = BUILT / "release"
    return Programs("in Rust", (str(release / "gateway"),), (str(release / "load"),))
