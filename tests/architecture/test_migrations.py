"""A migration that a release has does not change any more: stores that it made would never hear of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.migrations_in_git import FOLDER, changed_since_a_release, since_when_migrations_are_these

ROOT = Path(__file__).parents[2]


def test_no_migration_of_a_release_has_changed() -> None:
    assert changed_since_a_release(ROOT) == [], "write a migration instead (CONTRIBUTING.md)"


def test_it_is_noticed_in_a_tree_with_a_release(tmp_path: Path) -> None:
    """A change and a file that is gone are; a new one is none. Without a release the first may still change."""

    def git(*words: str) -> str:
        name = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done = subprocess.run(["git", "-C", tmp_path, *name, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit() -> str:
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "--message", "x")
        return git("rev-parse", "HEAD")

    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    git("init", "--quiet")
    assert since_when_migrations_are_these(tmp_path) is None
    (folder / "0001_first.py").write_text("one")
    commit()
    (folder / "0001_first.py").write_text("another")
    assert (changed_since_a_release(tmp_path), since_when_migrations_are_these(tmp_path)) == ([], None)
    first = commit()
    commit()
    assert since_when_migrations_are_these(tmp_path) == first
    git("tag", "v0.1.0")
    (folder / "0002_second.py").write_text("two")
    commit()
    git("tag", "v0.2.0")
    assert changed_since_a_release(tmp_path) == []
    (folder / "0001_first.py").write_text("changed")
    (folder / "0002_second.py").unlink()
    assert changed_since_a_release(tmp_path) == [
        f"v0.1.0:{FOLDER}/0001_first.py",
        f"v0.2.0:{FOLDER}/0001_first.py",
        f"v0.2.0:{FOLDER}/0002_second.py",
    ]
