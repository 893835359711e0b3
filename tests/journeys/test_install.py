"""What `make wheel` builds, installed as the pages say: a Waypost with its lab, and the client alone for a caller."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.quick_start import CLEAN, LAB, PAGE, ROOT, URL, blocks, write_configuration
from waypost import __version__

PIP_INSTALL = re.compile(r"^pip install (.*?) *(?:#.*)?$", re.MULTILINE)
DISTRIBUTIONS = ("waypost", "waypost_client", "waypost_lab")
NEVER_IMPORTED = ("faker", "httpx", "polyfactory")
"""Litestar asks for them, for tests of applications and made-up examples; they are a sixth of what is installed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of this tree in ``dist``."""
    made = subprocess.run(
        ["make", "--no-print-directory", "wheel"], cwd=ROOT, env=CLEAN, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    folder = tmp_path_factory.mktemp("install")
    (folder / "dist").mkdir()
    for distribution in DISTRIBUTIONS:
        shutil.copy(ROOT / "dist" / f"{distribution}-{__version__}-py3-none-any.whl", folder / "dist")
    return folder


def environment(folder: Path, name: str, wheels: str) -> Path:
    """A new environment with *wheels* as a page names them, and nothing else; its programs."""
    venv.create(folder / name, with_pip=False)
    pip = f"{sys.executable} -m pip --python {name}/bin/python install --quiet --no-index --no-deps {wheels}"
    subprocess.run(["bash", "-ec", pip], cwd=folder, check=True)
    return folder / name / "bin"


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a caller of a Waypost that runs from its wheels as the quick start says.

    What it needs of others is that of the tests, which no index is asked for; what it must never import ends it.
    """
    with_lab, _ = PIP_INSTALL.findall(PAGE)
    programs = environment(folder, "server", with_lab)
    (packages,) = (folder / "server" / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    for name in NEVER_IMPORTED:
        (packages / f"{name}.py").write_text(
            f"import os, sys\nprint('{name} was imported', file=sys.stderr)\nos._exit(9)"
        )
    with contextlib.ExitStack() as running:
        lab = running.enter_context(started(folder, programs, [*LAB, str(folder / "lab")]))
        config = write_configuration(folder, lab)
        ready = running.enter_context(started(folder, programs, ["serve", *config, "--listen", "127.0.0.1:0"]))
        key = ran([programs / "waypost", "keys", "create", "--app", "demo", "--caller", "me"], folder, CLEAN)
        environ = {"WAYPOST_URL": ready["url"], "WAYPOST_API_KEY": key, "WAYPOST_LAB": lab["admin"]}
        environ["PATH"] = f"{programs}:{CLEAN['PATH']}"
        yield CLEAN | environ


@contextlib.contextmanager
def started(folder: Path, programs: Path, command: list[str]) -> Iterator[dict[str, Any]]:
    """Run a command of Waypost; what its ready line says."""
    with (
        (folder / f"{command[0]}.log").open("w+") as log,
        subprocess.Popen(
            [programs / "waypost", *command, "--json"], cwd=folder, env=CLEAN, stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line, Path(log.name).read_text()
            yield json.loads(line)
        finally:
            process.terminate()  # leaving the block waits for it


def ran(command: list[Path | str], folder: Path, environ: dict[str, str]) -> str:
    """What a command prints that ends well."""
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip()


def asked(url: str) -> Any:
    """What a server of this test answers."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own, over HTTP
        return json.load(answer)


def test_the_readme_names_wheels_that_there_are(folder: Path) -> None:
    named = PIP_INSTALL.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    found = [[path.name.split("-")[0] for path in folder.glob(wheels)] for wheels in named]
    assert found == [["waypost"], ["waypost_client"]]


def test_the_client_alone_sends_through_an_installed_waypost(folder: Path, service: dict[str, str]) -> None:
    """The Python of the quick start, in an environment that holds nothing but the client."""
    _, client_alone = PIP_INSTALL.findall(PAGE)
    python = environment(folder, "caller", client_alone) / "python"
    (packages,) = (folder / "caller" / "lib").glob("python*/site-packages")
    assert {path.name.split("-")[0] for path in packages.iterdir()} == {"waypost_client"}
    add, *_ = [line for line in PAGE.splitlines() if "waypost devices add" in line]
    ran(["bash", "-ec", add], folder, service)
    said = [
        ran([python, "-I", "-c", program.replace(URL, service["WAYPOST_URL"])], folder, service)
        for program in blocks("python")
    ]
    assert said == ["sent", "False"]
    received = asked(f"{service['WAYPOST_LAB']}/received")["received"]
    taken = [each["payload"] for each in received if each["accepted"] and each["gateway"] == "fcm"]
    assert len(taken) == 2
    assert all("Your parcel is here" in json.dumps(payload) for payload in taken)


def test_an_installed_waypost_describes_itself_and_shows_its_command_line(
    folder: Path, service: dict[str, str]
) -> None:
    """Without what it must never import, the reference and the whole of a notification's way."""
    assert asked(f"{service['WAYPOST_URL']}/openapi.json")["info"]["version"] == __version__
    token = ["devices", "add", "bob", "phone", "--platform", "ios", "--token", "ab" * 32]
    ran(["waypost", *token], folder, service)
    assert "receipt: sent" in ran(["waypost", "send", "bob", "--title", "Hi", "--wait"], folder, service)
