"""Other versions of Waypost: wheels of this tree and of a commit, each in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from scripts.services.service import Missing

ROOT: Final = Path(__file__).parents[2]
MIGRATIONS: Final = ROOT / "src" / "waypost" / "adapters" / "sql" / "migrations" / "versions"


def before_newest_migration() -> str:
    """The last commit that did not have it, where all do that are older; Missing where the clone goes not so far."""
    newest = max(MIGRATIONS.glob("[0-9]*.py"))
    try:
        added = _git("log", "--diff-filter=A", "--format=%H", "--", str(newest))
        return _git("rev-parse", "--verify", "--quiet", f"{added.splitlines()[-1]}^" if added else "HEAD")
    except (subprocess.CalledProcessError, FileNotFoundError) as failed:
        raise Missing(f"the history before {newest.stem} is not here: git fetch --unshallow") from failed


def checked_out(commit: str, folder: Path) -> Path:
    """The tree of *commit*, in a new folder."""
    archive = folder.with_suffix(".zip")
    _git("archive", "--output", str(archive), commit)
    shutil.unpack_archive(archive, folder)
    archive.unlink()
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


def _git(*arguments: str) -> str:
    said = subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True)
    return said.stdout.strip()
