"""What the pages have people put into a clone, secrets above all, is none of git's business."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("path", "is_ignored"),
    [
        ("waypost.yaml", True),
        ("waypost.db-wal", True),
        ("lab/twilio_token.txt", True),
        ("AuthKey.p8", True),
        ("vapid.pem", True),
        ("fcm.json", True),
        ("webhook.secret", True),
        ("callers.jwks.json", True),
        (".env", True),
        ("deploy/compose/.env", True),
        ("deploy/compose/credentials/fcm.json", True),
        ("deploy/compose/postgres.yaml", False),
        ("src/waypost/lab/credentials.py", False),
    ],
)
def test_what_the_pages_put_into_a_clone_is_ignored(path: str, is_ignored: bool, tmp_path: Path) -> None:
    """Passwords of the database and keys of providers stood beside the compose files for everybody to commit."""
    shutil.copy(ROOT / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    ignored = subprocess.run(["git", "check-ignore", "--quiet", path], cwd=tmp_path, check=False).returncode == 0
    assert ignored is is_ignored
