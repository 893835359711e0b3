"""A command starts fast: it imports what it needs, and not what only a worker or another command does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import waypost
from waypost.domain.time import Instant
from waypost.runtime.python import MODULE
from waypost.runtime.supervisor import worker_command
from waypost.stores.sql.database import prepare
from waypost.stores.sql.settings import SqlSettings

API_COMMANDS = (
    "import waypost.cli.sending, waypost.cli.bulk, waypost.cli.dead, waypost.cli.devices, waypost.cli.showing"
)
HEAVY = (
    "aiohttp", "alembic", "cryptography", "faker", "httpx", "litestar", "opentelemetry.sdk", "polyfactory", "pydantic",
    "rich", "sqlalchemy", "uvicorn", "yaml",
)  # fmt: skip
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
        (
            "from waypost.entrypoints.rest.app import Application; Application(openapi_config=None)",
            {"cryptography", "litestar", "uvicorn", "yaml"},
        ),
    ],
    ids=[
        "commands that speak to the API",
        "reading a configuration",
        "a supervisor",
        "a worker on today's schema",
        "the REST application",
    ],
)
def test_what_is_not_needed_is_not_imported(program: str, needs: set[str], tmp_path: Path) -> None:
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {}}")
    prepare(SqlSettings(url=f"sqlite:///{tmp_path}/waypost.db"), Instant(0))
    shown = f"{program}\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    ended = subprocess.run([sys.executable, "-c", shown], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) <= needs


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    """A process that Waypost starts runs no ``yaml.py`` that lies where it was started."""
    for name in ("yaml", "msgspec", "json"):
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w')\nraise SystemExit(7)\n")
    ended = subprocess.run(worker_command(None), check=False, cwd=tmp_path, capture_output=True, text=True)
    assert ended.stderr == "this is how the supervisor starts a worker; use: waypost serve\n"
    assert not list(tmp_path.glob("ran-*"))


def test_one_place_says_how_python_is_started() -> None:
    """Whoever starts a process in another way would import from the current folder."""
    source = Path(waypost.__file__).parent
    named = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if "sys.executable" in path.read_text()
    }
    assert named == {"runtime/python.py"}


def test_what_a_command_writes_is_for_its_user_alone(tmp_path: Path) -> None:
    """Whatever the shell's mask says."""
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {}}\nstore: sqlite:///waypost.db\n")
    command = [*MODULE, "waypost.cli", "keys", "create", "--app", "demo", "--caller", "shop"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, umask=0)
    made = [path for path in tmp_path.rglob("*") if path.name != "waypost.yaml"]
    assert made
    assert {path.name: oct(path.stat().st_mode & 0o077) for path in made if path.stat().st_mode & 0o077} == {}


def test_what_the_lab_writes_is_for_its_user_alone(tmp_path: Path) -> None:
    """Without the command line of Waypost, too: it makes private keys, and notes what was sent."""
    ports = [f"--{name}-port=0" for name in ("apns", "fcm", "webpush", "oauth", "admin")]
    command = [*MODULE, "waypost.lab", "--directory", str(tmp_path / "lab"), "--json", "--journal", *ports]
    with subprocess.Popen(command, stdout=subprocess.PIPE, umask=0) as lab:
        assert lab.stdout is not None and lab.stdout.readline()
        lab.terminate()
    made = [tmp_path / "lab", *(tmp_path / "lab").rglob("*")]
    assert len(made) > 5
    assert {path.name: oct(path.stat().st_mode & 0o077) for path in made if path.stat().st_mode & 0o077} == {}


def test_a_process_ends_without_looking_for_garbage() -> None:
    """That may kill it: msgspec frees types in an order of its own."""
    program = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count())); import waypost.bootstrap"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(ended.stdout) > 0
