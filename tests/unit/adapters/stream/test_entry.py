"""How an entry changes with each settlement of its devices, and what its row says in the end."""

from __future__ import annotations

import msgspec
import pytest

from tests.shows import shows
from waypost.compat.jobs_stream.actions import TokenAction
from waypost.compat.jobs_stream.entry import JobEntry, LogStatus, Note, Tried, after, begun, id_of, note_of, status_of
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.delivery import Attempt, FailureClass, Target
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId, created_at
from waypost.domain.job import Job
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Again, Change, Dead, Forget, Parked, Sent, Settlement
from waypost.domain.time import Instant, later
from waypost.ports.work import Settled

NOW = Instant(1_800_000_000_000)
FCM = Channel("fcm")
NOTIFICATION = Notification(
    NotificationId(b"n" * 16), AppId("a"), CallerId("c"), UserId("u"), Content(), NOW, NOW, 0, Lane.HIGH
)
TARGETS = tuple(Target(n, DeviceId(f"row-{n}"), FCM) for n in range(3))
MADE = Attempt(NOW, "taken", "", "", b"h" * 16)
RETRY = Again(later(NOW, 30_000), spends_attempt=True, code="UNAVAILABLE", why="")
PAUSE = Again(later(NOW, 90_000), spends_attempt=False, code="QUOTA_EXCEEDED", why="")


def settled(
    *changes: tuple[int, Settlement], attempt: int = 1, targets: tuple[Target, ...] | None = TARGETS
) -> Settled:
    """A settlement of some devices."""
    made = tuple(Change(n, attempt, settlement, NOW, MADE) for n, settlement in changes)
    return Settled(NOTIFICATION, made, targets)


def fresh() -> JobEntry:
    """Of which the devices are not known yet."""
    return begun(JobEntry("1-1", 1, Job("u"), Note("7")))


@shows("S0-35")
def test_it_is_open_until_each_device_has_its_outcome() -> None:
    entry, stale = after(fresh(), settled((0, Sent("x")), (2, Forget("UNREGISTERED", NOW, letter=False))))
    assert entry.waiting == {1}
    assert not stale
    entry, _ = after(entry, settled((1, Dead("THIRD_PARTY_AUTH_ERROR", "", FailureClass.TERMINAL, letter=False))))
    assert not entry.waiting
    assert status_of(entry.note.devices or ()) is LogStatus.PARTIAL


def test_the_first_outcome_of_an_attempt_counts() -> None:
    entry, _ = after(fresh(), settled((0, Sent("x"))))
    same, stale = after(entry, settled((0, RETRY)))
    assert [(change.n, change.attempt) for change in stale] == [(0, 1)]
    assert same.note == entry.note


def test_what_is_to_be_retried_is_left_to_another_delivery() -> None:
    """Only those devices, with the attempts that were made."""
    entry, _ = after(fresh(), settled((0, Sent("x")), (1, RETRY), (2, Sent("y"))))
    assert entry.to_retry
    again = begun(JobEntry("1-1", 2, Job("u"), note_of(_kept(entry)) or Note("")))
    assert [(each.n, each.device_id, each.attempt) for each in again.targets(FCM) or ()] == [(1, "row-1", 1)]
    entry, stale = after(again, settled((1, Sent("z")), attempt=2, targets=None))
    assert not stale
    assert not entry.to_retry
    assert status_of(entry.note.devices or ()) is LogStatus.SENT


def test_what_is_not_taken_while_the_provider_is_away_stays_in_hand() -> None:
    """A probe above all: the outage would spend the deliveries of whoever makes it."""
    gone = Dead("unavailable", "", FailureClass.RETRYABLE, letter=False)
    entry, _ = after(fresh(), settled((0, gone), (1, Sent("x")), (2, Sent("y"))), rest_ms=500)
    assert (entry.to_retry, entry.resumes_at) == (False, later(NOW, 500))
    entry, _ = after(fresh(), settled((0, RETRY), (1, Sent("x")), (2, Sent("y"))), rest_ms=500)
    assert (entry.to_retry, entry.resumes_at) == (False, RETRY.due_at)


def test_what_waits_stays_in_hand_until_its_time() -> None:
    entry, _ = after(fresh(), settled((0, Parked("breaker:x", NOW)), (1, PAUSE), (2, Sent("y"))))
    assert (entry.waiting, entry.to_retry, entry.resumes_at) == (frozenset(), False, PAUSE.due_at)
    assert begun(entry).resumes_at is None


@shows("S0-19")
@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ((), LogStatus.NO_TOKENS),
        ((TokenAction.SENT, TokenAction.SENT), LogStatus.SENT),
        ((TokenAction.SENT, TokenAction.REMOVE), LogStatus.PARTIAL),
        ((TokenAction.SENT, None), LogStatus.PARTIAL),
        ((TokenAction.REMOVE, TokenAction.FATAL), LogStatus.FAILED),
        ((None,), LogStatus.FAILED),
    ],
)
def test_the_row_says_what_became_of_all(outcomes: tuple[TokenAction | None, ...], status: LogStatus) -> None:
    """Requirement S0-19."""
    assert status_of([Tried(DeviceId("d"), 1, each) for each in outcomes]) is status


def test_a_note_that_cannot_be_read_is_none() -> None:
    assert note_of(b"") is None
    assert note_of(b"{}") is None
    assert note_of(b'["7"]') == Note("7")


def test_an_id_is_of_its_entry_and_its_time() -> None:
    one = id_of("s", "g", "1800000000000-5")
    assert one == id_of("s", "g", "1800000000000-5")
    assert len({one, id_of("s", "g", "1800000000000-6"), id_of("s", "h", "1800000000000-5")}) == 3
    assert created_at(one) == NOW
    assert (one[6] >> 4, one[8] >> 6) == (7, 2)


def _kept(entry: JobEntry) -> bytes:
    return msgspec.json.encode(entry.note)
