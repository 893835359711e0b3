"""What all tests share: a mark for each folder, and hypothesis without deadlines (a busy machine is no bug)."""

from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

settings.register_profile("waypost", deadline=None, print_blob=True)
settings.load_profile("waypost")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with the name of its folder, so that `-m unit` selects by kind."""
    for item in items:
        if item.path.is_relative_to(TESTS):
            folder = item.path.relative_to(TESTS).parts[0]
            item.add_marker(getattr(pytest.mark, folder))
