"""The migrations as the commits have them: which change, and which may no more."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

FOLDER: Final = "src/waypost/stores/sql/migrations/versions"
RELEASES: Final = "v[0-9]*"
"""The tags of releases."""


def since_when_migrations_are_these(tree: Path) -> str | None:
    """The first commit whose migrations are those that lie in *tree*; None where there is none, or no history."""
    if _git(tree, "status", "--porcelain", "--", FOLDER) != "":
        return None
    return _git(tree, "log", "-1", "--format=%H", "--", FOLDER) or None


def changed_since_a_release(tree: Path) -> list[str]:
    """The migrations of a release that lie in *tree* otherwise than it has them, or not at all: none may."""
    changed = set()
    for tag in (_git(tree, "tag", "--list", RELEASES) or "").split():
        names = _git(tree, "diff", "--name-only", "--diff-filter=MDRT", "--no-renames", tag, "--", FOLDER)
        changed |= {f"{tag}:{name}" for name in (names or "").split()}
    return sorted(changed)


def _git(tree: Path, *words: str) -> str | None:
    """What git says of *tree*; None where it has nothing to say."""
    done = subprocess.run(["git", "-C", tree, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
