"""Every test is run by `make test`, or by the command that runs what takes too long for it."""

from scripts.test import GROUPS
from tests.architecture.trees import ROOT

LONG = {"tests/faults"}
"""`make faults`; it also runs what is marked `long`."""


def test_each_folder_of_tests_belongs_to_a_group() -> None:
    """A new adapter's tests would otherwise never run."""
    run = {folder for group in GROUPS for folder in group.folders} | LONG
    found = {path.parent.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")}
    forgotten = {str(folder) for folder in found if not run & {str(each) for each in (folder, *folder.parents)}}
    assert forgotten == set()
