"""The short way to a receipt gives what the domain's rules give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.bench import TOKEN_HASH
from waypost.adapters.sql.connection import connect
from waypost.adapters.sql.rows import INSERT_RECEIPT, RECEIPT, Row, receipt_of, receipt_row
from waypost.adapters.sql.straight import INSERT_SENT, first_sent, is_first_and_sent, sent_row
from waypost.domain.delivery import Attempt, Receipt
from waypost.domain.ids import DeviceId, NotificationId
from waypost.domain.notification import Channel, Lane
from waypost.domain.settlement import Change, Sent, apply
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant

FRESH = Receipt(
    NotificationId(b"i" * 16), 3, DeviceId("phone"), Channel("fcm"), DeliveryStatus.PENDING, due_at=Instant(7)
)


@pytest.mark.parametrize("code", ["", "200"])
@pytest.mark.parametrize("provider_id", ["", "projects/p/messages/1"])
def test_a_first_success_reads_the_same_either_way(provider_id: str, code: str) -> None:
    change = Change(3, 1, Sent(provider_id), Instant(12), Attempt(Instant(10), "taken", code, "", TOKEN_HASH))
    assert is_first_and_sent(FRESH, change)
    assert first_sent(FRESH, change) == apply(FRESH, change)


@pytest.mark.parametrize("code", ["", "200"])
def test_both_statements_write_the_same_row(code: str, tmp_path: Path) -> None:
    change = Change(3, 1, Sent("p"), Instant(12), Attempt(Instant(10), "taken", code, "", TOKEN_HASH))
    receipt = first_sent(FRESH, change)
    written: list[Row] = []
    for sql, row in (
        (INSERT_SENT, sent_row(receipt, "demo", 5)),
        (INSERT_RECEIPT, receipt_row(receipt, "demo", 5, Lane.NORMAL)),
    ):
        connection = connect(tmp_path / f"{len(written)}.db")
        columns = f"{RECEIPT}, app, shard"  # the lane is only of use to what may be open again
        connection.execute(f"CREATE TABLE receipt ({columns}, lane)")
        connection.execute(sql, row)
        written.append(connection.execute(f"SELECT {columns} FROM receipt").fetchone())  # noqa: S608 - columns
        connection.close()
    assert written[0] == written[1]
    assert receipt_of(written[0]) == receipt
