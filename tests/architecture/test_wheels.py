"""What is installed where: machines that serve get no simulators, and the command line says how to get them."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import grimp
import pytest

from tests.architecture.trees import ROOT

FOR_DEVELOPERS = {"bench", "contract", "lab"}
RUN_BY_OTHERS = ("waypost.stores.sql.migrations.", "waypost.v1.")
"""Alembic runs the revisions by their folder; the stubs of ``waypost.v1`` are for callers."""

FOR_PLUG_INS = {"waypost.channels.push.provider", "waypost.runtime.courier_sender"}
"""Parts that senders in packages of their own are made with, such as those in ``examples/``."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of this tree, unpacked, by distribution."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, ROOT / "packaging" / "client", ROOT / "packaging" / "lab"):
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
        subprocess.run(command, check=True, capture_output=True)
    unpacked = {}
    for wheel in folder.glob("*.whl"):
        unpacked[wheel.name.split("-")[0]] = folder / wheel.stem
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / wheel.stem)
    return unpacked


def modules(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}


def test_each_module_is_in_exactly_one_wheel(wheels: dict[str, Path]) -> None:
    runtime, lab = modules(wheels["waypost"]), modules(wheels["waypost_lab"])
    assert runtime.isdisjoint(lab)
    assert runtime | lab == modules(ROOT / "src")
    assert {name.split("/")[1] for name in lab} == FOR_DEVELOPERS


def test_the_client_alone_is_that_of_waypost_typed_and_needs_nothing(wheels: dict[str, Path]) -> None:
    """Under a name of its own, so that neither of two packages that are installed overwrites the other's files."""
    alone, inside = wheels["waypost_client"], wheels["waypost"] / "waypost" / "client"
    files = {
        path.relative_to(alone / "waypost_client"): path.read_bytes() for path in alone.rglob("waypost_client/*.*")
    }
    assert files == {path.relative_to(inside): path.read_bytes() for path in inside.glob("*.*")}
    assert Path("py.typed") in files
    assert modules(alone).isdisjoint(modules(wheels["waypost"]))
    (metadata,) = alone.glob("*.dist-info/METADATA")
    assert "Requires-Dist" not in metadata.read_text()
    program = (
        "import sys, waypost_client, waypost_client.asynchronous\n"
        "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    )
    ended = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(alone)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(ended.stdout.split()) == {"__main__", "waypost_client"}


def test_nothing_that_tests_alone_use_is_installed() -> None:
    """Each module is imported by another one, or named in a text, as entry points, commands and features are."""
    graph = grimp.build_graph("waypost", cache_dir=None)
    texts = "".join(path.read_text() for path in [ROOT / "pyproject.toml", *(ROOT / "src").rglob("*.py")])
    unused = {
        module
        for module in graph.modules
        if not graph.find_modules_that_directly_import(module) and not graph.find_children(module)
        if not module.endswith(".__main__") and not module.startswith(RUN_BY_OTHERS)
        if f'"{module}' not in texts
    }
    assert unused == FOR_PLUG_INS


@pytest.mark.parametrize("command", [["lab"], ["lab", "check", "--list"], ["bench", "kernel"], ["demo", "--once"]])
def test_without_the_lab_the_command_line_says_how_to_install_it(wheels: dict[str, Path], command: list[str]) -> None:
    environ = os.environ | {"PYTHONPATH": str(wheels["waypost"])}
    ended = subprocess.run(
        [sys.executable, "-m", "waypost.cli", *command], env=environ, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "the package waypost-lab" in ended.stderr
    assert "Traceback" not in ended.stderr
