"""Packages of this tree, installed as the pages say: by dpkg, into a system that is thrown away, by pipx and by uv.

They install everything anew: `make packages` runs them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scripts import debian
from scripts.services.shared import ROOT
from waypost import __version__

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]

PAGE = (ROOT / "docs" / "deploy.md").read_text()
TOOLS = re.compile(r"^(pipx|uv) .*$", re.MULTILINE)
THROW_AWAY = """\
mount -t tmpfs tmpfs {made}
mkdir {made}/upper {made}/work {made}/root
mount -t overlay overlay -o lowerdir=/,upperdir={made}/upper,workdir={made}/work {made}/root
mount -t proc proc {made}/root/proc
mount --bind /dev {made}/root/dev
mkdir -p {made}/root/packages && cp {package} {made}/root/packages/
exec chroot {made}/root sh -ec "$1"
"""
"""A shell in a copy of this system that ends with it: nothing that it installs stays."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package of this tree."""
    if os.geteuid() != 0 or shutil.which("dpkg-deb") is None:
        pytest.skip("building and installing a Debian package takes Debian, and root")
    return debian.build(tmp_path_factory.mktemp("deb"))


def inside(package: Path, folder: Path, script: str) -> str:
    """What *script* prints, run as root in a system of its own."""
    made = folder / "system"
    made.mkdir()
    outer = THROW_AWAY.format(made=made, package=package)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", outer, "sh", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_debian_package_installs_serves_upgrades_and_keeps_what_was_accepted(package: Path, tmp_path: Path) -> None:
    """A changed configuration survives an upgrade; the store survives a purge."""
    said = inside(
        package,
        tmp_path,
        """
        dpkg -i /packages/*.deb >&2
        waypost --version
        stat -c '%a %U %G %n' /etc/waypost/waypost.yaml /etc/waypost /var/lib/waypost
        as() { STATE_DIRECTORY=/var/lib/waypost WAYPOST_CONFIG=/etc/waypost/waypost.yaml runuser -u waypost -- "$@"; }
        as waypost keys create --app demo --caller me > /dev/null
        as waypost doctor --offline --json > /tmp/doctor.json || { cat /tmp/doctor.json >&2; exit 9; }
        sed -i 's/127.0.0.1:8080/127.0.0.1:8081/' /etc/waypost/waypost.yaml
        dpkg -i --force-confold /packages/*.deb >&2
        grep -c 8081 /etc/waypost/waypost.yaml
        as waypost doctor --offline --json > /tmp/again.json; sed -n 2p /tmp/again.json
        dpkg --purge waypost >&2
        ls /opt/waypost /etc/waypost 2>/dev/null | wc -l
        ls /var/lib/waypost/waypost.db
        cat /tmp/doctor.json
        """,
    ).splitlines()
    assert said[0].endswith(__version__)
    assert said[1:4] == [
        "640 root waypost /etc/waypost/waypost.yaml",
        "750 root waypost /etc/waypost",
        "700 waypost waypost /var/lib/waypost",
    ]
    assert said[4:8] == ["1", '  "ok": true,', "0", "/var/lib/waypost/waypost.db"]
    found = json.loads("\n".join(said[8:]))
    assert found["ok"]


def test_nothing_in_the_package_may_be_changed_by_others(package: Path) -> None:
    """And nothing names the folder that it was built in."""
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
    assert [line for line in listed.splitlines() if line[0] != "l" and line[8] == "w"] == []
    programs = re.findall(r"\./opt/waypost/bin/(\S+)", listed)
    assert set(programs) == {"waypost", "python", "python3", "python3.11"} | {"python" + sys.version[:4]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with its wheel in ``dist``, an empty home beside it, and pipx and uv."""
    made = tmp_path_factory.mktemp("tools")
    (made / "requirements").symlink_to(ROOT / "requirements")
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        made / "dist",
        ROOT,
    ]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-m", "venv", made / "pipx"], check=True)
    subprocess.run([made / "pipx/bin/pip", "install", "--quiet", "pipx"], check=True)
    return made


@pytest.mark.parametrize("command", [found[0] for found in TOOLS.finditer(PAGE)])
def test_a_tool_installs_the_wheel_into_a_home_of_its_own(command: str, folder: Path, tmp_path: Path) -> None:
    """As the page has it; then the program is there, and looks at a configuration."""
    programs = f"{folder}/pipx/bin:{Path(sys.executable).parent}:/usr/bin:/bin"
    home = {name: value for name, value in os.environ.items() if not name.startswith(("PIPX", "VIRTUAL_ENV", "XDG"))}
    home |= {"HOME": str(tmp_path), "PATH": programs}
    subprocess.run(["bash", "-ec", command], cwd=folder, env=home, check=True)
    waypost = tmp_path / ".local" / "bin" / "waypost"
    said = subprocess.run([waypost, "--version"], capture_output=True, text=True, check=True, env=home).stdout
    assert said.split()[-1] == __version__
    (tmp_path / "waypost.yaml").write_text(
        yaml.safe_dump({"store": f"sqlite:///{tmp_path}/w.db", "apps": {"demo": {}}, "workers": 1})
    )
    looked = subprocess.run(
        [waypost, "doctor", "--json"], cwd=tmp_path, env=home, capture_output=True, text=True, check=False
    )
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert json.loads(looked.stdout)["ok"]
