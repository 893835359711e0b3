"""The files of deploy/ give a service what it needs: folders that it may write to, and the time to end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import fields

from scripts.services.shared import ROOT
from waypost.bootstrap.registry import load
from waypost.config import Config
from waypost.stores.sql.connection import database_path
from waypost.stores.sql.settings import is_postgres

DEPLOY = ROOT / "deploy"
STACKS = sorted(path.stem for path in (DEPLOY / "compose").glob("*.yaml") if path.stem != "common")
UNIT = dict(re.findall(r"^(\w+)=(.*)$", (DEPLOY / "systemd" / "waypost.service").read_text(), re.MULTILINE))
ENV = re.compile(r"^ENV (.*)$", re.MULTILINE)
ON_POSTGRES = "store: postgresql://waypost@127.0.0.1/waypost\napps: {demo: {}}\n"
ON_DISK = "store: sqlite:////var/lib/waypost/waypost.db\napps: {demo: {}}\n"


def written_by(content: str, environ: dict[str, str], folder: Path) -> Path:
    """The folder that a service with this configuration writes to; *folder* stands for its own, which is read-only."""
    path = folder / "waypost.yaml"
    path.write_text(content)
    store = load(path, environ).store
    return Path(store.run_dir).parent if is_postgres(store.url) else database_path(store.url).parent


def compose(name: str) -> Any:
    """A file of deploy/compose."""
    return yaml.safe_load((DEPLOY / "compose" / f"{name}.yaml").read_text())


def environment_of_the_image() -> dict[str, str]:
    """What the last stage of the Dockerfile sets."""
    (line,) = ENV.findall((DEPLOY / "Dockerfile").read_text())
    return dict(each.split("=", 1) for each in line.split())


@pytest.mark.parametrize("stack", STACKS)
def test_a_container_writes_to_its_volume_alone(stack: str, tmp_path: Path) -> None:
    """Its file system is read-only: on PostgreSQL no container began, since its locks were to lie in /etc/waypost."""
    content = compose(stack)["configs"]["waypost"]["content"].replace("$$", "$")
    environ = environment_of_the_image() | {"POSTGRES_PASSWORD": "made-up"}
    (volume,) = [each.split(":")[1] for each in compose("common")["services"]["waypost"]["volumes"] if each[0] != "."]
    assert written_by(content, environ, tmp_path) == Path(volume)


@pytest.mark.parametrize("content", [ON_POSTGRES, ON_DISK])
def test_the_unit_writes_to_its_state_directory_alone(content: str, tmp_path: Path) -> None:
    state = f"/var/lib/{UNIT['StateDirectory']}"
    assert UNIT["ProtectSystem"] == "strict"
    assert "ReadWritePaths" not in UNIT
    assert written_by(content, {"STATE_DIRECTORY": state}, tmp_path) == Path(state)


def test_whoever_ends_it_waits_until_it_has_drained() -> None:
    """A service that is killed earlier sends again what was in flight."""
    (drain_s,) = [each.default for each in fields(Config) if each.name == "drain_timeout_s"]
    grace = compose("common")["services"]["waypost"]["stop_grace_period"]
    assert drain_s < int(UNIT["TimeoutStopSec"])
    assert drain_s < int(grace.removesuffix("s"))
