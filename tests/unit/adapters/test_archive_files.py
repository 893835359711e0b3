"""Notifications as rows of a file, and back."""

from __future__ import annotations

import io
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from waypost.domain.content import Action, Content
from waypost.domain.delivery import Attempt, FailureClass, Receipt
from waypost.domain.ids import AppId, CallerId, DeviceId, UserId, next_ids
from waypost.domain.notification import Guarantee, Lane, Notification
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.domain.waits import WaitsFor
from waypost.ports.views import Marked, NotificationDetail, NotificationRecord
from waypost.stores.archive.parquet import GROUP, found, read, written

AT = Instant(1_750_000_000_123)
IDS = next_ids(AT, GROUP * 2 + 1, bytes(10), 0)[0]
WHOLE = Content(
    title="Grüße ✓",
    data={"order": 2**60, "nested": {"a": [1.5, None, True]}},
    actions=(Action("yes", "Yes", "https://shop.example"),),
    type="news",
    campaign="spring",
    variant="b",
)
MADE = Notification(
    IDS[0],
    AppId("demo"),
    CallerId("shop"),
    UserId("ann"),
    WHOLE,
    AT,
    Instant(AT + 5),
    5,
    Lane.BULK,
    guarantee=Guarantee.AT_MOST_ONCE,
    device_ids=(DeviceId("phone"),),
    scheduled_at=Instant(AT + 1),
    retry_policy="patient",
)
RECEIPT = Receipt(
    IDS[0],
    0,
    DeviceId("phone"),
    None,
    DeliveryStatus.FAILED,
    attempt=2,
    failure_class=FailureClass.TERMINAL,
    dead=True,
    attempts=(Attempt(AT, "gone", "410", "no such token", b"\x00\xff", "backup"),),
    waits=WaitsFor((0,), 30),
)
RECORD = NotificationRecord(MADE, NotificationStatus.PARTIAL, AT, "why", IDS[1], 3, archived=True)
DETAIL = NotificationDetail(RECORD, (RECEIPT,), (IDS[2],), Marked(AT, None))


def test_everything_comes_back_as_it_was() -> None:
    assert read(written([DETAIL])) == [DETAIL]


def test_without_its_content_a_row_says_what_became_of_it() -> None:
    """Also what it was counted under: its type, campaign and variant."""
    (left,) = read(written([DETAIL], with_content=False))
    bare = Content(type="news", campaign="spring", variant="b")
    assert left == replace(DETAIL, record=replace(RECORD, notification=replace(MADE, content=bare)))
    assert "Gr" not in str(pq.read_table(io.BytesIO(written([DETAIL], with_content=False))).to_pylist())


@pytest.mark.parametrize("n", [0, GROUP - 1, GROUP, GROUP * 2])
def test_one_is_found_and_the_group_that_has_it_is_all_that_is_read(n: int) -> None:
    """A reader of ranges reads where the groups lie, and one of them."""
    made = [NotificationDetail(replace(RECORD, notification=replace(MADE, id=one))) for one in IDS]
    data = written([each for each in made if each.record.notification.id != IDS[1]])
    there = found(io.BytesIO(data), IDS[n])
    assert there is not None
    assert there.record.notification.id == IDS[n]
    assert found(io.BytesIO(data), IDS[1]) is None


def test_a_process_that_has_read_nothing_yet_finds_one() -> None:
    """All that it takes is imported by what needs it."""
    program = (
        "import io, sys; from waypost.stores.archive.parquet import found;"
        " print(found(io.BytesIO(sys.stdin.buffer.read()), bytes.fromhex(sys.argv[1])).record.status)"
    )
    command = [sys.executable, "-c", program, IDS[0].hex()]
    ran = subprocess.run(command, input=written([DETAIL]), capture_output=True, check=True)
    assert ran.stdout.strip() == b"partial"
