"""The worker slots outlive their writers."""

from __future__ import annotations

from pathlib import Path

from tests.unit.domain.made import notification
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.ports.work import WorkItem
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.worker_slots import SUSPECTS, WorkerSlots, WorkerState

ONE, TWO = NotificationId(b"1" * 16), NotificationId(b"2" * 16)


def test_a_heartbeat_is_seen_through_another_mapping(tmp_path: Path) -> None:
    """What one process writes, another reads."""
    writer, reader = WorkerSlots(tmp_path / "worker_slots"), WorkerSlots(tmp_path / "worker_slots")
    writer.beat(3, WorkerState.READY, 12.5)
    (presence,) = reader.present()
    assert (presence.slot, presence.state, presence.heartbeat_s) == (3, WorkerState.READY, 12.5)


def test_the_notes_of_the_dead_become_suspects(tmp_path: Path) -> None:
    """Noted alone counts; noted among others does not; what was cleared is not suspect."""
    worker_slots = WorkerSlots(tmp_path / "worker_slots")
    worker_slots.note(0, Lane.NORMAL, [ONE, TWO])
    worker_slots.note(0, Lane.HIGH, [ONE])
    worker_slots.note(0, Lane.LOW, [TWO])
    worker_slots.note(0, Lane.LOW, [])
    assert worker_slots.bury(0) == 3
    assert worker_slots.suspects() == {ONE: 1, TWO: 0}
    worker_slots.clear(TWO)
    assert WorkerSlots(tmp_path / "worker_slots").suspects() == {ONE: 1}


def test_nothing_is_suspect_after_a_good_end(tmp_path: Path) -> None:
    """A worker that came through leaves empty notes."""
    worker_slots = WorkerSlots(tmp_path / "worker_slots")
    worker_slots.note(0, Lane.NORMAL, [ONE])
    worker_slots.note(0, Lane.NORMAL, [])
    assert worker_slots.bury(0) == 0
    assert worker_slots.suspects() == {}
    assert worker_slots.present() == []


def test_a_table_full_of_old_suspects_still_takes_the_next(tmp_path: Path) -> None:
    """What was cancelled or sent elsewhere is never cleared; it must not hide what kills workers today."""
    worker_slots = WorkerSlots(tmp_path / "worker_slots")
    old = [NotificationId(number.to_bytes(16, "big")) for number in range(SUSPECTS)]
    for start in range(0, SUSPECTS, 500):
        worker_slots.note(0, Lane.BULK, old[start : start + 500])
        worker_slots.bury(0)
    assert len(worker_slots.suspects()) == SUSPECTS
    poison = NotificationId(b"p" * 16)
    for _ in range(3):
        worker_slots.note(0, Lane.NORMAL, [poison])
        worker_slots.bury(0)
    assert worker_slots.suspects()[poison] == 3
    assert len(worker_slots.suspects()) == SUSPECTS


def test_each_suspect_is_touched_alone_before_the_others(tmp_path: Path) -> None:
    """So that the next death tells which it was; one that was survived is as the others again."""
    worker_slots = WorkerSlots(tmp_path / "worker_slots")
    items = [WorkItem(notification(id=NotificationId(bytes([n]) * 16)), None) for n in range(4)]
    ids = [item.notification.id for item in items]
    worker_slots.note(0, Lane.NORMAL, [ids[1], ids[3]])
    worker_slots.bury(0)
    watch = PoisonWatch(worker_slots, 0)
    assert list(watch.split(items)) == [(items[1],), (items[3],), [items[0], items[2]]]
    with watch.noting(Lane.NORMAL, [items[1]]):
        pass
    assert list(watch.split(items)) == [(items[3],), [items[0], items[1], items[2]]]
