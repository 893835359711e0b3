"""What a caller can read of a delivery that took more than one attempt."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.adapters.rest.service import served, shown
from tests.shows import shows
from waypost.domain.channel import Channel
from waypost.domain.delivery import Attempt, Target
from waypost.domain.ids import DeviceId
from waypost.domain.notification import Lane
from waypost.domain.settlement import Again, Change, Sent
from waypost.domain.time import later
from waypost.ports.work import Settled

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

HASH = b"h" * 16


@shows("S3-60")
async def test_a_receipt_names_the_providers_id_the_error_and_the_retries() -> None:
    """Requirements S3-60: while it waits, and when it was taken."""
    async with served() as (service, client):
        answer = await client.post("/v1/notifications", json=shown(urgency="high"))
        path = f"/v1/notifications/{answer.json()['id']}"
        now = service.clock.now()
        lease = await service.work.lease(Lane.HIGH, 1, later(now, 60_000))
        (item,) = lease.items
        failed = Attempt(now, "unanswered", "UNAVAILABLE", "FCM is not available", HASH)
        again = Change(0, 1, Again(later(now, 1_000), True, failed.code, failed.message), now, failed)
        target = Target(0, DeviceId("phone"), Channel("fcm"))
        assert await service.work.settle(lease, [Settled(item.notification, (again,), (target,))]) == []
        (waiting,) = (await client.get(path)).json()["receipts"]
        assert (waiting["status"], waiting["code"], waiting["reason"]) == ("pending", failed.code, failed.message)
        assert (waiting["retries"], waiting["attempt_count"]) == (1, 1)
        due = datetime.fromisoformat(waiting["next_retry_at"]).timestamp() * 1000
        assert round(due) == now + 1_000

        service.clock.advance(1_000)
        await service.work.promote_due(service.clock.now(), 10)
        lease = await service.work.lease(Lane.HIGH, 1, later(service.clock.now(), 60_000))
        taken = Attempt(service.clock.now(), "taken", "", "", HASH)
        sent = Change(0, 2, Sent("projects/p/messages/1"), service.clock.now(), taken)
        assert await service.work.settle(lease, [Settled(item.notification, (sent,))]) == []
        (receipt,) = (await client.get(path)).json()["receipts"]
        assert (receipt["status"], receipt["provider_id"]) == ("sent", "projects/p/messages/1")
        assert (receipt["retries"], receipt["attempt_count"], receipt["next_retry_at"]) == (1, 2, None)
        assert [each["code"] for each in receipt["attempts"]] == ["UNAVAILABLE", ""]
