"""What the tests of the lab and those of the senders share."""

from pathlib import Path

import pytest

from waypost.lab.credentials import write_missing


@pytest.fixture(scope="session")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys and certificates made once, which takes a while; each lab gets a copy."""
    directory = tmp_path_factory.mktemp("credentials")
    write_missing(directory, "lab-project")
    return directory
