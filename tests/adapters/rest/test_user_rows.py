"""What became of a notification, as its user reads it in the shapes of S3."""

from __future__ import annotations

import pytest

from tests.adapters.rest.test_api_shape import created, for_ann
from tests.shows import shows
from waypost.domain.delivery import FailureClass
from waypost.domain.settlement import Dead, Sent

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]


@shows("S3-53")
@pytest.mark.parametrize(
    ("said", "shown", "urgency"),
    [({"priority": "low"}, "low", "low"), ({"priority": "high"}, "high", "high"), ({}, "normal", "normal")],
)
async def test_the_priority_is_the_urgency_that_senders_put_into_the_payload(
    said: dict[str, str], shown: str, urgency: str
) -> None:
    """Requirements S3-53: normal unless said."""
    async with for_ann() as (service, client):
        made = await created(client, **said)
        assert (await client.get(f"/api/notifications/{made}")).json()["data"]["priority"] == shown
        (row,) = await service.accepted()
        assert row.urgency == urgency


@shows("S3-51")
async def test_a_user_without_tokens_reads_failed_with_the_reason() -> None:
    """Requirements S3-51."""
    async with for_ann() as (service, client):
        made = await created(client)
        await service.settled()
        row = (await client.get(f"/api/notifications/{made}")).json()["data"]
        assert (row["status"], row["error_message"], row["sent_at"]) == (
            "failed",
            "the user has no active tokens",
            None,
        )


@shows("S3-59")
async def test_one_token_that_got_it_is_sent_and_none_is_failed_with_all_reasons() -> None:
    """Requirements S3-59."""
    gone, away = (Dead(code, f"it is {code}", FailureClass.TERMINAL, letter=True) for code in ("gone", "away"))
    async with for_ann() as (service, client):
        rows = []
        for outcomes in ((gone, Sent("p")), (gone, away)):
            made = await created(client)
            service.clock.advance(1_000)
            await service.settled(*outcomes)
            rows.append((await client.get(f"/api/notifications/{made}")).json()["data"])
        assert [row["status"] for row in rows] == ["sent", "failed"]
        assert [row["sent_at"] is not None for row in rows] == [True, False]
        assert rows[1]["error_message"] == "it is gone; it is away"
