"""Turns: the way in which so many places are shared out among those who wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def turn_after(last: str) -> Callable[[str], tuple[bool, str]]:
    """Return the key by which apps come in the order of their names, those after *last* first."""
    return lambda app: (app <= last, app)


def in_turns(n: int, queues: Sequence[Iterable[T]]) -> list[T]:
    """Take at most *n* from *queues*: of each its share, then of those with more. No more is read than taken."""
    taken: list[T] = []
    waiting = [iter(queue) for queue in queues]
    while waiting and len(taken) < n:
        share = max(1, (n - len(taken)) // len(waiting))
        unsatisfied = []
        for queue in waiting:
            part = list(islice(queue, min(share, n - len(taken))))
            taken += part
            if len(part) == share:
                unsatisfied.append(queue)
        waiting = unsatisfied
    return taken
