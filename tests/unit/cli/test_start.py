"""A command starts fast: it imports what it needs, and not what only a worker or another command does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from waypost.domain.time import Instant
from waypost.stores.sql.database import prepare
from waypost.stores.sql.settings import SqlSettings

API_COMMANDS = (
    "import waypost.cli.sending, waypost.cli.bulk, waypost.cli.dead, waypost.cli.devices, waypost.cli.showing"
)
HEAVY = ("aiohttp", "alembic", "cryptography", "litestar", "rich", "sqlalchemy", "uvicorn", "yaml")
"""Each takes as long to import as the interpreter does to start, or longer."""

OPEN_A_STORE = """
import asyncio
from pathlib import Path
from waypost.bootstrap.admin import open_admin_store
from waypost.bootstrap.registry import load

async def opened():
    async with open_admin_store(load(Path("waypost.yaml"), {})):
        pass

asyncio.run(opened())
"""


@pytest.mark.parametrize(
    ("program", "needs"),
    [
        (f"{API_COMMANDS}\nfrom waypost.client import Client, ClientError", set[str]()),
        ("from waypost.bootstrap.registry import installed; installed()", {"cryptography", "yaml"}),
        ("import waypost.bootstrap.serving", {"yaml"}),
        (f"import waypost.bootstrap.worker\n{OPEN_A_STORE}", {"cryptography", "litestar", "uvicorn", "yaml"}),
    ],
    ids=["commands that speak to the API", "reading a configuration", "a supervisor", "a worker on today's schema"],
)
def test_what_is_not_needed_is_not_imported(program: str, needs: set[str], tmp_path: Path) -> None:
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {}}")
    prepare(SqlSettings(url=f"sqlite:///{tmp_path}/waypost.db"), Instant(0))
    shown = f"{program}\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    ended = subprocess.run([sys.executable, "-c", shown], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) <= needs
