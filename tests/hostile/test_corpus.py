"""The hostile corpus through every door that is called: the same answer everywhere, or a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.behind import behind
from tests.hostile.corpus import Kept, cases
from tests.hostile.differences import otherwise
from tests.hostile.doors import CALLED, SHAPES, opened
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


@pytest.mark.parametrize("name", ["REST", "gRPC, stream"])
async def test_what_is_said_again_is_answered_with_the_first(name: str, tmp_path: Path) -> None:
    """Whoever replays what they overheard has nothing sent twice."""
    async with opened(name, tmp_path) as door:
        kept = [case for case in cases() if isinstance(case.must, Kept)]
        first = await door.offer(kept)
        assert await door.offer(kept) == first
        assert len(door.behind.taken.ids) == len(set(door.behind.taken.ids)) <= len(kept)


@pytest.mark.parametrize("key", ["", "wp_' OR 1=1; --", "\u00e9" * 100])
async def test_whoever_is_nobody_is_told_so_whatever_they_say(key: str, tmp_path: Path) -> None:
    """Nothing of a body is looked at before its caller is known."""
    async with behind(tmp_path) as service, service.client() as client:
        client.headers.pop("authorization")
        said = {b"authorization": f"Bearer {key}".encode("latin-1"), b"content-type": b"application/json"}
        for path, _ in SHAPES.values():
            for case in cases()[::20]:
                answer = await client.post(path, content=case.body, headers=said)
                problem = answer.json().get("error", answer.json())
                assert (answer.status_code, problem["code"]) == (401, "unauthenticated")
        assert service.taken.ids == []
        assert service.log_faults() == []
