"""The hostile corpus through every door that is called: the same answer everywhere, or a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.corpus import cases
from tests.hostile.differences import otherwise
from tests.hostile.doors import CALLED, opened
from tests.hostile.judging import judged
from tests.tables import AddRow

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("name", CALLED)
async def test_every_submission_is_answered_as_it_must_be(name: str, tmp_path: Path, table: AddRow) -> None:
    """What is kept is kept as it was said; nothing is a surprise, and nothing of it is in the log."""
    async with opened(name, tmp_path) as door:
        corpus = cases()
        complaints, sorts = await judged(door, corpus, otherwise(name, corpus))
    table("hostile submissions", door=name, **sorts)
    assert complaints == []
