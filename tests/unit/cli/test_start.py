"""A command starts fast: it imports what it needs, and not what only a worker or another command does."""

from __future__ import annotations

import subprocess
import sys

import pytest

API_COMMANDS = (
    "import waypost.cli.sending, waypost.cli.bulk, waypost.cli.dead, waypost.cli.devices, waypost.cli.showing"
)
HEAVY = ("aiohttp", "alembic", "cryptography", "litestar", "rich", "sqlalchemy", "uvicorn", "yaml")
"""Each takes as long to import as the interpreter does to start, or longer."""


@pytest.mark.parametrize(
    ("program", "needs"),
    [
        (f"{API_COMMANDS}\nfrom waypost.client import Client, ClientError", set[str]()),
        ("from waypost.bootstrap.registry import installed; installed()", {"cryptography", "yaml"}),
        ("import waypost.bootstrap.serving", {"sqlalchemy", "yaml"}),
    ],
    ids=["commands that speak to the API", "reading a configuration", "a supervisor"],
)
def test_what_is_not_needed_is_not_imported(program: str, needs: set[str]) -> None:
    shown = f"{program}\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    ended = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) <= needs
