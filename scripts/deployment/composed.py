"""The stacks of deploy/compose, read by the reader that Docker Compose itself has."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from scripts.deployment.tools import ROOT, program

DEPLOY: Final = ROOT / "deploy"
_ASKED: Final = re.compile(r"\$\{POSTGRES_PASSWORD:\?[^}]*\}")


def stacks() -> list[str]:
    """List the stacks."""
    return sorted(path.stem for path in (DEPLOY / "compose").glob("*.yaml") if path.stem != "common")


def judge(stack: str) -> None:
    """Have Compose read a stack with all it extends and includes; a password stands where ``.env`` would bring it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "deploy"
        shutil.copytree(DEPLOY, folder)
        for path in (folder / "compose").glob("*.yaml"):  # its reader alone looks into no .env
            path.write_text(_ASKED.sub("made-up", path.read_text()))
        subprocess.run([program("cmd"), f"{stack}.yaml"], cwd=folder / "compose", check=True, stdout=subprocess.DEVNULL)
