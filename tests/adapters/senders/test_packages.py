"""Senders in packages of their own, as ``waypost senders new`` writes them and as ``examples/huawei-hms`` is: they are
installed, their tests pass, linter and types have nothing to say, and ``waypost lab check`` passes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hurry import PROBED_SOON
from waypost.lab.check.cases import CASES

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
EXAMPLE = ROOT / "examples" / "huawei-hms"
LONGEST = "a" * 32
"""A channel of as many letters as a channel may have: no line may become too long."""


def run(command: Sequence[str | Path], directory: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a developer does, with nothing of Waypost in the environment."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("WAYPOST_", "PYTEST_"))}
    return subprocess.run(
        [str(word) for word in command], cwd=directory, env=own | environ, check=False, capture_output=True, text=True
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What a command printed, for a failure."""
    return f"{done.stdout}\n{done.stderr}"


def written(name: str, directory: Path) -> Path:
    """A new package."""
    done = run([BIN / "waypost", "senders", "new", name], directory)
    assert done.returncode == 0, said(done)
    assert f"waypost lab check --sender {name}" in done.stdout
    return directory / f"waypost-{name}"


@pytest.fixture(scope="module")
def pager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new package ``pager``."""
    return written("pager", tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module")
def site(pager: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both packages, built and installed, without a network, into a folder beside Waypost."""
    folder = tmp_path_factory.mktemp("site")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", "--quiet"]
    done = run([sys.executable, "-m", "pip", "install", *offline, "--target", folder, pager, EXAMPLE], folder)
    assert done.returncode == 0, said(done)
    (folder / "sitecustomize.py").write_text(PROBED_SOON)
    return folder


def test_a_new_package_is_clean(pager: Path, tmp_path: Path) -> None:
    for package in (pager, written(LONGEST, tmp_path), EXAMPLE):
        for words in (("check",), ("format", "--check")):
            done = run([BIN / "ruff", *words, "--no-cache", "."], package)
            assert done.returncode == 0, said(done)


def test_its_types_are_strict(pager: Path) -> None:
    """With Waypost's own settings, which are no laxer than the package's, and the cache of ``make check``."""
    parts = [folder / part for folder in (pager, EXAMPLE) for part in ("src", "tests")]
    files = [parts[0], pager / "tests" / "test_pager.py", *parts[2:]]  # both have a test_contract
    places = os.pathsep.join(map(str, (ROOT / "src", *parts)))
    done = run([BIN / "mypy", "--config-file", ROOT / "pyproject.toml", *files], ROOT, MYPYPATH=places)
    assert done.returncode == 0, said(done)


@pytest.mark.parametrize("name", ["pager", "huawei"])
def test_its_own_tests_pass(name: str, pager: Path, site: Path, tmp_path: Path) -> None:
    package = {"pager": pager, "huawei": EXAMPLE}[name]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", f"--basetemp={tmp_path / 'tests'}"]
    done = run([sys.executable, "-m", "pytest", *options], package, PYTHONPATH=str(site), PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, said(done)
    listed = run([BIN / "waypost", "senders", "--json"], tmp_path, PYTHONPATH=str(site))
    (found,) = [each for each in json.loads(listed.stdout)["senders"] if each["channel"] == name]
    assert (found["platforms"], found["package"], found["in_lab"]) == ([name], f"waypost-{name} 0.1.0", True)


def test_lab_check_passes_them(site: Path, tmp_path: Path) -> None:
    """Every case; silence takes its time, so those cases have a service and a lab of their own meanwhile."""
    names = [case.name for case in CASES if "twilio" in case.gateways]
    halves = [[name for name in names if name.startswith("silent") is silent] for silent in (True, False)]

    def check(cases: list[str]) -> list[dict[str, str]]:
        directory = tmp_path / cases[0]
        directory.mkdir()
        chosen = [word for name in cases for word in ("--case", name)]
        own = ["--sender", "pager", "--sender", "huawei", "--quiet-time", "0.1", "--json"]
        done = run([BIN / "waypost", "lab", "check", *own, *chosen], directory, PYTHONPATH=str(site))
        assert done.stdout, said(done)
        results: list[dict[str, str]] = json.loads(done.stdout)["results"]
        return results

    with ThreadPoolExecutor(2) as threads:
        results = [each for half in threads.map(check, halves) for each in half]
    assert [each for each in results if each["verdict"] != "passed"] == []
    assert {(each["case"], each["gateway"]) for each in results} == {
        (name, gateway) for name in names for gateway in ("pager", "huawei")
    }
