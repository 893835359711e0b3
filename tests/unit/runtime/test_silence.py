"""Who is silent, and who only was asleep together with the one who listens."""

from __future__ import annotations

from waypost.runtime.silence import LONGEST_GAP_S, Silence
from waypost.runtime.worker_slots import Presence, WorkerState


def heard(heartbeat_s: float, pid: int = 1) -> list[Presence]:
    """One worker with its last heartbeat."""
    return [Presence(0, pid, WorkerState.READY, heartbeat_s)]


def test_a_worker_that_beats_no_more_is_silent_for_as_long_as_was_listened() -> None:
    silence = Silence(0.0)
    for tenths in range(101):
        silent = silence.look(heard(0.0), tenths / 10)
    assert abs(silent[0] - 10.0) < 0.01
    assert silence.look(heard(10.2), 10.3) == {0: 0.0}


def test_a_gap_in_which_nobody_listened_is_nobodys_silence() -> None:
    """Asleep for an hour, once or again and again: a heartbeat may take as long as it would have without."""
    silence = Silence(0.0)
    assert silence.look(heard(0.0), 0.2) == {0: 0.0}
    assert silence.look(heard(0.0), 3_600.0)[0] <= LONGEST_GAP_S
    assert silence.look(heard(3_600.1), 3_600.2) == {0: 0.0}


def test_another_process_in_the_same_place_starts_anew() -> None:
    silence = Silence(0.0)
    silence.look(heard(0.0), 0.0)
    assert silence.look(heard(0.0), 0.5) == {0: 0.5}
    assert silence.look(heard(0.0, pid=2), 1.0) == {0: 0.0}
