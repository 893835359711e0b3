"""The pins are what the package asks for, and each can be checked against its hash."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.trees import ROOT

PIN = re.compile(
    r"^([a-z0-9-]+)==(\S+)(?: ; [^\\]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


def pins(name: str) -> dict[str, str]:
    """Give what a requirement file pins: project and version."""
    return {match[1]: match[2] for match in PIN.finditer((ROOT / "requirements" / name).read_text())}


def test_runtime_pins_satisfy_the_package() -> None:
    """Whoever edits the dependencies runs `make lock`."""
    pinned = pins("runtime.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for wish in map(Requirement, project["dependencies"]):
        assert wish.specifier.contains(pinned[canonicalize_name(wish.name)], prereleases=True), str(wish)


@pytest.mark.parametrize("name", ["runtime.txt", "server.txt"])
def test_development_pins_contain_what_users_run(name: str) -> None:
    """Tests run on the same."""
    assert pins(name).items() <= pins("dev.txt").items()


@pytest.mark.parametrize("name", ["runtime.txt", "server.txt", "dev.txt"])
def test_every_line_is_a_pin_with_hashes(name: str) -> None:
    """Nothing but pins: no option, no index, no comment."""
    assert PIN.sub("", (ROOT / "requirements" / name).read_text()) == ""
