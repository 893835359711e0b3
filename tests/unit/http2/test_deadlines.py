"""RequestDeadlines share timers, and a finished request leaves nothing behind."""

import asyncio

import pytest

from waypost.http2.deadlines import RequestDeadlines
from waypost.http2.stream import Batch


@pytest.mark.asyncio
async def test_deadlines_pass_in_order_never_early_and_not_when_discarded() -> None:
    """Later ones added first; one of them ends before."""
    loop = asyncio.get_running_loop()
    passed: list[tuple[float, float]] = []
    all_passed = loop.create_future()

    def on_passed(batches: list[Batch]) -> None:
        passed.extend([(batch.deadline, loop.time()) for batch in batches])
        if len(passed) == 3:
            all_passed.set_result(None)

    deadlines = RequestDeadlines(loop, on_passed)
    now = loop.time()
    batches = [Batch(now + after_s, 0.0, lambda ended: None, 1) for after_s in (0.2, 0.1, 0.15, -1.0)]
    for batch in batches:
        deadlines.add(batch)
    deadlines.discard(batches[2])
    await all_passed
    assert [deadline for deadline, _ in passed] == [now - 1.0, now + 0.1, now + 0.2]
    assert all([deadline <= at for deadline, at in passed])


@pytest.mark.asyncio
async def test_a_request_that_begins_as_another_ones_deadline_passes_is_watched() -> None:
    """Compiled, the look at the timer that it had set was an error, which the loop reported."""
    loop = asyncio.get_running_loop()
    errors: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: errors.append(context))
    passed: list[Batch] = []
    second_passed = loop.create_future()

    def on_passed(batches: list[Batch]) -> None:
        passed.extend(batches)
        if batches == [first]:
            deadlines.add(second)
        else:
            second_passed.set_result(None)

    deadlines = RequestDeadlines(loop, on_passed)
    first, second = (Batch(loop.time() + after_s, 0.0, lambda ended: None, 1) for after_s in (0.02, 0.05))
    deadlines.add(first)
    await second_passed
    assert passed == [first, second]
    assert errors == []
