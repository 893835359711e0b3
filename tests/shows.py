"""The requirements that a test shows; docs/internals/requirements.md is written from these marks."""

from __future__ import annotations

import pytest


def shows(*ids: str) -> pytest.MarkDecorator:
    """Mark a test with the ids of the requirements that it shows, such as ``@shows("S1-42", "S2-07")``.

    ``python -m scripts.requirements`` reads the ids from the source, so they stand there as texts.
    """
    return pytest.mark.shows(*ids)
