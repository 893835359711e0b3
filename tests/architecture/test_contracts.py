"""The import contracts of pyproject.toml hold, and each of them bites when its rule is broken."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.trees import ROOT, Tree, copy_tree
from tests.shows import shows

# contract, module that breaks it, the breaking line
PLANTED = (
    ("layers", "waypost.domain.planted", "import waypost.ports"),
    ("layers", "waypost.telemetry.planted", "import waypost.domain"),
    ("layers", "waypost.ports.planted", "import waypost.pipeline"),
    ("layers", "waypost.pipeline.planted", "import waypost.runtime"),
    ("layers", "waypost.runtime.planted", "import waypost.adapters"),
    ("layers", "waypost.adapters.planted.planted", "import waypost.entrypoints"),
    ("layers", "waypost.entrypoints.planted.planted", "import waypost.adapters"),
    ("layers", "waypost.entrypoints.planted.planted", "import waypost.config"),
    ("layers", "waypost.config", "import waypost.bootstrap"),
    ("layers", "waypost.bootstrap", "import waypost.cli"),
    ("layers", "waypost.bootstrap", "import waypost.bench"),
    ("layers", "waypost.bench.planted", "import waypost.cli"),
    ("layers", "waypost.http2.planted", "import waypost.telemetry"),
    ("layers", "waypost.client.planted", "import waypost.domain"),
    ("layers", "waypost.v1.planted", "import waypost.domain"),
    ("layers", "waypost.lab.planted", "import waypost.adapters"),
    ("layers", "waypost.lab.planted", "import waypost.ports"),
    ("judge", "waypost.lab.planted", "import waypost.http2"),
    ("judge", "waypost.lab.planted", "import waypost.client"),
    ("stages", "waypost.pipeline.planted", "import waypost.pipeline.other_planted"),
    ("adapters", "waypost.adapters.planted.planted", "import waypost.adapters.other_planted.settings"),
    ("adapters", "waypost.stores.redis.planted", "import waypost.stores.sql.settings"),
    ("channels", "waypost.channels.apns.planted", "import waypost.channels.fcm.errors"),
    ("channels", "waypost.channels.push.planted", "import waypost.channels.apns.errors"),
    ("no-io", "waypost.domain.planted", "import sqlalchemy"),
    ("no-io", "waypost.domain.planted", "import ssl"),
    ("no-io", "waypost.telemetry.planted", "import prometheus_client"),
    ("no-io", "waypost.ports.planted", "import sqlite3"),
    ("no-io", "waypost.pipeline.planted", "import aiohttp"),
    ("no-io", "waypost.pipeline.planted", "import waypost.http2"),
    ("no-loop", "waypost.domain.planted", "import asyncio"),
    ("composition-adapters", "waypost.config", "import waypost.adapters.other_planted.work"),
    ("composition-adapters", "waypost.cli", "import waypost.adapters.other_planted.settings"),
    ("composition-entrypoints", "waypost.config", "import waypost.entrypoints.other_planted.work"),
    ("composition-entrypoints", "waypost.cli", "import waypost.entrypoints.other_planted.work"),
    ("layers", "waypost.features.planted.planted", "import waypost.bootstrap"),
    ("features", "waypost.features.planted.planted", "import waypost.features.other_planted"),
    ("composition-features", "waypost.cli", "import waypost.features.other_planted"),
    ("kernel", "waypost.entrypoints.planted.planted", "import waypost.http2"),
    ("lab-users", "waypost.bootstrap", "import waypost.lab"),
)
CYCLE = ("waypost.domain.planted", "import waypost.domain.other_planted")

UNPLACED = "waypost.unplaced"

# Modules that the planted lines name, so that each breaks a rule by an import that works.
BESIDE = (
    ("waypost.config", ""),
    ("waypost.pipeline.other_planted", ""),
    ("waypost.adapters.other_planted.settings", ""),
    ("waypost.adapters.other_planted.work", ""),
    ("waypost.entrypoints.other_planted.work", ""),
    ("waypost.features.other_planted", ""),
    ("waypost.domain.other_planted", "import waypost.domain.planted"),
    (UNPLACED, ""),
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A copy of the source tree."""
    return copy_tree(tmp_path)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each contract, by its name, where all are broken at once: linting takes half a second."""
    tree = copy_tree(tmp_path_factory.mktemp("broken"))
    for beside, text in BESIDE:
        tree.plant(beside, text)
    for _, module, line in PLANTED:
        tree.plant(module, line)
    linted = tree.lint(*dict.fromkeys(contract for contract, _, _ in PLANTED))
    assert linted.returncode == 1, linted.stdout + linted.stderr
    assert " 0 kept," in linted.stdout
    _, *said = re.split(r"^(.+)\n-+\n", linted.stdout.partition("\nBroken contracts\n")[2], flags=re.MULTILINE)
    return dict(zip(said[::2], said[1::2], strict=True))


def contracts() -> dict[str, str]:
    """Give the names of all contracts by their ids."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {contract["id"]: contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]}


@shows("S1-31")
def test_the_tree_keeps_every_contract(tree: Tree) -> None:
    """Nothing is imported against the layers."""
    linted = tree.lint()
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_every_contract_has_a_planted_violation() -> None:
    """A contract nobody has seen bite proves nothing."""
    assert contracts().keys() == {contract for contract, _, _ in PLANTED} | {"cycles"}


@pytest.mark.parametrize(("contract", "module", "line"), PLANTED)
def test_a_planted_violation_breaks_its_contract(broken: dict[str, str], contract: str, module: str, line: str) -> None:
    """The contract is broken, and the report names the module that broke it, and by which import."""
    said = broken[contracts()[contract]]
    assert f" {module} -> {line.removeprefix('import ')} (l." in said


def test_a_module_without_a_layer_is_named(broken: dict[str, str]) -> None:
    assert f"- {UNPLACED}\n" in broken[contracts()["layers"]]


def test_a_cycle_breaks_its_contract(tree: Tree) -> None:
    """It is looked for among siblings, everywhere."""
    for module, line in (*BESIDE, CYCLE):
        tree.plant(module, line)
    linted = tree.lint("cycles")
    assert "0 kept, 1 broken" in linted.stdout, linted.stdout + linted.stderr
    assert "planted" in linted.stdout


def test_config_may_read_the_settings_of_adapters_and_entrypoints(tree: Tree) -> None:
    """The rule against naming adapters leaves config what it needs."""
    tree.plant("waypost.adapters.planted.settings", "")
    tree.plant("waypost.entrypoints.planted.settings", "")
    tree.plant(
        "waypost.config", "import waypost.adapters.planted.settings\nimport waypost.entrypoints.planted.settings"
    )
    linted = tree.lint("layers", "composition-adapters", "composition-entrypoints")
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_a_sender_may_import_what_senders_have_in_common(tree: Tree) -> None:
    """The rule against knowing other adapters leaves this one folder open to them."""
    tree.plant("waypost.adapters.planted.sender", "import waypost.channels.push.watch")
    linted = tree.lint("adapters", "composition-adapters", "cycles")
    assert linted.returncode == 0, linted.stdout + linted.stderr
