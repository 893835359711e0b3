"""Senders in packages of their own, as ``waypost senders new`` writes them and as ``examples/huawei-hms`` is: they are
installed, their tests pass, linter and types have nothing to say, and ``waypost lab check`` passes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hurry import PROBED_SOON
from waypost.lab.check.cases import CASES

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
EXAMPLE = ROOT / "examples" / "huawei-hms"
LONGEST = "a" * 32
"""A channel of as many letters as a channel may have: no line may become too long."""
NAMES = [case.name for case in CASES if "twilio" in case.gateways]
"""The cases that are made for any gateway that speaks HTTP."""
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Nothing is written into the source of the example."""
Run = subprocess.CompletedProcess[str]


def run(command: Sequence[str | Path], directory: Path, **environ: str) -> Run:
    """Run a command as a developer does, with nothing of Waypost in the environment."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("WAYPOST_", "PYTEST_"))}
    return subprocess.run(
        [str(word) for word in command], cwd=directory, env=own | environ, check=False, capture_output=True, text=True
    )


def said(done: Run) -> str:
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


@pytest.fixture(scope="module")
def runs(pager: Path, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Run]]]:
    """Runs that wait more than they work, all at once: both packages' tests, and the lab's cases.

    Silence takes its time, so those cases have a service and a lab of their own.
    """
    folder = tmp_path_factory.mktemp("runs")

    def tested(package: Path) -> Run:
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", f"--basetemp={folder / package.name}"]
        return run([sys.executable, "-m", "pytest", *options], package, PYTHONPATH=str(site), **NO_BYTECODE)

    def checked(cases: Sequence[str]) -> Run:
        directory = folder / cases[0]
        directory.mkdir()
        chosen = [word for name in cases for word in ("--case", name)]
        own = ["--sender", "pager", "--sender", "huawei", "--quiet-time", "0.1", "--json"]
        return run([BIN / "waypost", "lab", "check", *own, *chosen], directory, PYTHONPATH=str(site))

    silent = [name for name in NAMES if name.startswith("silent")]
    others = [name for name in NAMES if name not in silent]
    with ThreadPoolExecutor(4) as threads:
        yield {
            "silent": threads.submit(checked, silent),
            "others": threads.submit(checked, others),
            "pager": threads.submit(tested, pager),
            "huawei": threads.submit(tested, EXAMPLE),
        }


@pytest.mark.parametrize("name", ["pager", "huawei"])
def test_its_own_tests_pass(name: str, runs: dict[str, Future[Run]]) -> None:
    done = runs[name].result()
    assert done.returncode == 0, said(done)


@pytest.mark.parametrize("name", ["pager", "huawei"])
def test_it_is_listed(name: str, site: Path, tmp_path: Path) -> None:
    listed = run([BIN / "waypost", "senders", "--json"], tmp_path, PYTHONPATH=str(site))
    (found,) = [each for each in json.loads(listed.stdout)["senders"] if each["channel"] == name]
    assert (found["platforms"], found["package"], found["in_lab"]) == ([name], f"waypost-{name} 0.1.0", True)


def test_lab_check_passes_them(runs: dict[str, Future[Run]]) -> None:
    """Every case that is made for HTTP."""
    results = []
    for done in (runs["silent"].result(), runs["others"].result()):
        assert done.stdout, said(done)
        results += json.loads(done.stdout)["results"]
    assert [each for each in results if each["verdict"] != "passed"] == []
    every = {(name, gateway) for name in NAMES for gateway in ("pager", "huawei")}
    assert {(each["case"], each["gateway"]) for each in results} == every
