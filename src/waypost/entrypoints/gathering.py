"""Gathering: submissions that come one by one, but in one turn of the event loop, share what those of a batch share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

Said = TypeVar("Said")
Answer = TypeVar("Answer")

MOST: Final = 100
"""The most that are submitted together: they are one operation of a commit, for which whoever is urgent may wait."""

_Submit = Callable[[Sequence[Said]], Coroutine[Any, Any, Sequence[Answer]]]
_Others = list[tuple[Said, asyncio.Future[Answer | None]]]
"""The submissions beside the first of a gathering, and who waits for each; None: it is to be submitted by itself."""


class Gathering(Generic[Said, Answer]):
    """A place where submissions wait for those that come in the same turn of the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[object, _Others[Said, Answer]] = {}
        """The others of each gathering that has begun, by what is alike in all of it."""
        self._together: set[asyncio.Task[Sequence[Answer]]] = set()
        """The tasks of what is submitted together, and not answered yet."""

    async def submit(
        self, said: Said, alike: object, submit: _Submit[Said, Answer], may_share: Callable[[], bool]
    ) -> Answer:
        """Have *submit* answer *said*, with all of the turn for which *alike* is the same.

        Where they *may not share*, each is submitted by itself. What is submitted together goes on when one of those
        who wait for it is cancelled; an error of *submit* is raised for all of them.
        """
        loop = asyncio.get_running_loop()
        others = self._waiting.get(alike)
        if others is not None and len(others) < MOST - 1:
            waits: asyncio.Future[Answer | None] = loop.create_future()
            others.append((said, waits))
            answer = await waits
            return (await submit([said]))[0] if answer is None else answer
        others = self._waiting[alike] = []
        try:
            await asyncio.sleep(0)
            shares = bool(others) and may_share()
        except BaseException:
            _let_go(others)
            raise
        finally:
            if self._waiting.get(alike) is others:
                del self._waiting[alike]
        if not shares:
            _let_go(others)
            return (await submit([said]))[0]
        return (await asyncio.shield(self._begin(submit([said, *(each for each, _ in others)]), others)))[0]

    def _begin(
        self,
        submitting: Coroutine[Any, Any, Sequence[Answer]],
        others: _Others[Said, Answer],
    ) -> asyncio.Task[Sequence[Answer]]:
        """Begin what goes on whoever is cancelled, and is told to *others*."""
        task = asyncio.create_task(submitting)
        self._together.add(task)
        task.add_done_callback(self._together.discard)
        task.add_done_callback(partial(_tell, others))
        return task


def _let_go(others: _Others[Said, Answer]) -> None:
    """Let each of *others* be submitted by itself."""
    for _, waits in others:
        if not waits.done():
            waits.set_result(None)


def _tell(others: _Others[Said, Answer], together: asyncio.Task[Sequence[Answer]]) -> None:
    """Tell *others* what became of them."""
    failed = asyncio.CancelledError() if together.cancelled() else together.exception()
    answers = [None] * len(others) if failed is not None else together.result()[1:]
    for (_, waits), answer in zip(others, answers, strict=True):
        if waits.done():
            continue
        if failed is None:
            waits.set_result(answer)
        elif isinstance(failed, asyncio.CancelledError):
            waits.cancel()
        else:
            waits.set_exception(failed)
