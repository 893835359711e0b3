"""Versions of Waypost: wheels of this tree and of the next one, each in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from tests import later_migration
from waypost.stores.sql.migrations import VERSIONS

ROOT: Final = Path(__file__).parents[2]
WHAT_A_WHEEL_NEEDS: Final = ("src", "scripts", "requirements", "pyproject.toml", "README.md", "LICENSE")


def with_a_later_migration(folder: Path) -> Path:
    """This tree as it will be with one migration more, in a new folder."""
    folder.mkdir()
    for name in WHAT_A_WHEEL_NEEDS:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    later_migration.add_to(folder / VERSIONS.relative_to(ROOT))
    return folder


def as_of(commit: str, folder: Path) -> Path:
    """The tree of a commit, in a new folder."""
    folder.mkdir()
    made = subprocess.run(["git", "-C", ROOT, "archive", commit, *WHAT_A_WHEEL_NEEDS], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", folder], check=True, input=made.stdout)
    return folder


def installed(tree: Path, folder: Path) -> str:
    """The interpreter of a new environment in *folder*: the wheel of *tree*, and what the tree pins for servers."""
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "wheel", tree],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    venv.create(folder, with_pip=False)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-input", "--no-compile"]
    subprocess.run([*pip, "--require-hashes", "-r", tree / "requirements" / "server.txt"], check=True)
    subprocess.run([*pip, "--no-deps", *(folder / "wheel").glob("*.whl")], check=True)
    return python


def with_one_more(environment: Path, folder: Path) -> str:
    """The interpreter of a copy of an environment, in *folder*, whose Waypost has yet another migration."""
    shutil.copytree(environment, folder, symlinks=True)
    (versions,) = folder.glob(f"lib/*/site-packages/{VERSIONS.relative_to(ROOT / 'src')}")
    later_migration.add_to(versions, "latest")
    return str(folder / "bin" / "python")
