"""Status words of other APIs: table D-T1 of the requirements, row by row."""

from __future__ import annotations

import msgspec
import pytest

from tests.shows import shows
from waypost.domain.delivery import Receipt
from waypost.domain.ids import DeviceId, NotificationId
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.domain.vocabulary import Vocabulary, meant_by, notification_word, receipt_word, waits

_D, _N = DeliveryStatus, NotificationStatus

NOTIFICATIONS = """\
| Waypost        | notifications_service        | notify           | user_api        | simplens         |
| `pending`      | pending   | queued       | pending   | pending    |
| `scheduled`    | –         | queued       | scheduled | pending    |
| `processing`   | pending   | dispatched   | pending   | processing |
| `sent`         | sent      | completed    | sent      | delivered  |
| `partial`      | partial   | completed    | sent      | delivered  |
| `delivered`    | sent      | completed    | delivered | delivered  |
| `failed`       | failed    | failed       | failed    | failed     |
| `no_targets`   | no_tokens | failed       | failed    | failed     |
| `expired`      | failed    | failed       | failed    | failed     |
| `deduplicated` | –         | deduplicated | –         | –          |
| `suppressed`   | failed    | failed       | cancelled | failed     |
| `cancelled`    | –         | failed       | cancelled | failed     |
| `unknown`      | failed    | failed       | failed    | failed     |
"""
DELIVERIES = """\
| Waypost      | notifications_service      | notify        | user_api        | simplens        |
| `pending`    | pending | pending   | pending   | pending   |
| `sent`       | sent    | sent      | sent      | delivered |
| `delivered`  | sent    | delivered | delivered | delivered |
| `opened`     | sent    | delivered | delivered | delivered |
| `failed`     | failed  | failed    | failed    | failed    |
| `expired`    | failed  | expired   | failed    | failed    |
| `suppressed` | failed  | –         | cancelled | failed    |
| `cancelled`  | –       | –         | cancelled | failed    |
| `unknown`    | failed  | failed    | failed    | failed    |
"""


def _cells(table: str) -> list[tuple[str, Vocabulary, str | None]]:
    head, *rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [
        (row[0], Vocabulary(name), None if word == "–" else word)
        for row in rows
        for name, word in zip(head[1:], row[1:], strict=True)
    ]


@shows("S1-92", "S4-01", "S4-02", "S4-03")
@pytest.mark.parametrize(("status", "vocabulary", "word"), _cells(NOTIFICATIONS))
def test_a_notification_in_the_words_of_each(status: str, vocabulary: Vocabulary, word: str | None) -> None:
    assert notification_word(vocabulary, _N(status)) == word


@pytest.mark.parametrize(("status", "vocabulary", "word"), _cells(DELIVERIES))
def test_a_delivery_in_the_words_of_each(status: str, vocabulary: Vocabulary, word: str | None) -> None:
    assert receipt_word(vocabulary, _D(status)) == word


def test_the_tables_leave_nothing_out() -> None:
    every = {(status, vocabulary) for status in _N for vocabulary in Vocabulary}
    assert {(_N(status), vocabulary) for status, vocabulary, _ in _cells(NOTIFICATIONS)} == every
    every_delivery = {(status, vocabulary) for status in _D for vocabulary in Vocabulary}
    assert {(_D(status), vocabulary) for status, vocabulary, _ in _cells(DELIVERIES)} == every_delivery


@pytest.mark.parametrize("vocabulary", Vocabulary)
def test_the_statuses_meant_by_a_word_are_those_that_are_called_so(vocabulary: Vocabulary) -> None:
    words = {notification_word(vocabulary, status) for status in _N} - {None}
    for word in words:
        assert word is not None
        assert meant_by(vocabulary, word) == tuple(one for one in _N if notification_word(vocabulary, one) == word)
    assert meant_by(vocabulary, "no such word") == ()


RETRIED = Receipt(NotificationId(bytes(16)), 0, DeviceId("d"), None, _D.PENDING, attempt=1, due_at=Instant(1))
FRESH = msgspec.structs.replace(RETRIED, n=1, attempt=0)
TAKEN = msgspec.structs.replace(RETRIED, n=2, status=_D.SENT, due_at=None)


@pytest.mark.parametrize(
    ("receipts", "waiting"),
    [((), False), ((RETRIED,), True), ((RETRIED, FRESH), False), ((RETRIED, TAKEN), False), ((RETRIED, RETRIED), True)],
)
def test_all_targets_wait_where_each_was_tried_and_none_has_ended(receipts: tuple[Receipt, ...], waiting: bool) -> None:
    assert waits(receipts) is waiting


@pytest.mark.parametrize(
    ("vocabulary", "word"), [("notifications_service", "pending"), ("notify", "dispatched"), ("user_api", "failed")]
)
def test_what_waits_for_a_retry_has_failed_in_the_words_of_s3_alone(vocabulary: str, word: str) -> None:
    assert notification_word(Vocabulary(vocabulary), _N.PROCESSING, waiting=True) == word
