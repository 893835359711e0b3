"""The poison watch: one row must not kill every worker in turn (design section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.ports.work import WorkItem

ALONE_LIMIT = 3


class Notes(Protocol):
    """The notes that outlive a worker that is killed (a ``Board``)."""

    def suspects(self) -> dict[NotificationId, int]:
        """Return what dead workers had noted, and how often it was alone."""
        ...

    def note(self, slot: int, lane: Lane, ids: Sequence[NotificationId]) -> None:
        """Note that the worker *slot* is about to touch these notifications of *lane*."""
        ...

    def clear(self, notification_id: NotificationId) -> None:
        """Delete the note of a notification that was processed without harm."""
        ...


class NoNotes:
    """The notes where the queue itself counts how often it handed something out (fulfils Notes): none."""

    def suspects(self) -> dict[NotificationId, int]:
        """Return no suspects."""
        return {}

    def note(self, slot: int, lane: Lane, ids: Sequence[NotificationId]) -> None:
        """Do nothing: the queue has counted it already."""

    def clear(self, notification_id: NotificationId) -> None:
        """Do nothing: there is no note to delete."""


class PoisonWatch:
    """A watch that notes what is about to be touched, and takes what a dead worker had noted one at a time."""

    def __init__(self, worker_slots: Notes, slot: int) -> None:
        self._worker_slots = worker_slots
        self._slot = slot
        self._suspects: dict[NotificationId, int] = {}
        self._noted: dict[Lane, tuple[NotificationId, ...]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the suspects again: a worker died, or this one starts."""
        self._suspects = self._worker_slots.suspects()

    def split(self, items: Sequence[WorkItem]) -> Iterator[Sequence[WorkItem]]:
        """Split *items*: each suspect alone and first, then the others together."""
        if not self._suspects:
            yield items
            return
        others = [item for item in items if item.notification.id not in self._suspects]
        for item in items:
            if item.notification.id in self._suspects:
                yield (item,)
        if others:
            yield others

    def is_poison(self, item: WorkItem) -> bool:
        """Tell whether the item was alone each of the three times that its worker died."""
        return self._suspects.get(item.notification.id, 0) >= ALONE_LIMIT

    @contextmanager
    def noting(self, lane: Lane, items: Sequence[WorkItem]) -> Iterator[None]:
        """Keep *items* in the worker slots while they are routed, rendered and handed over, beside what is there
        already.

        After a surprise they stay there, for whoever buries this worker; a store that is away is none of their doing.
        """
        before = self._noted.get(lane, ())
        self._note(lane, (*before, *(item.notification.id for item in items)))
        try:
            yield
        except Unavailable:
            self._note(lane, before)
            raise
        self._note(lane, before)
        if self._suspects:
            for item in items:
                if self._suspects.pop(item.notification.id, None) is not None:
                    self._worker_slots.clear(item.notification.id)

    def _note(self, lane: Lane, ids: tuple[NotificationId, ...]) -> None:
        self._noted[lane] = ids
        self._worker_slots.note(self._slot, lane, ids)
