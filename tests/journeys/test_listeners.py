"""All who listen at a provider: told by one message, with a receipt like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.harness import Json, running, until
from tests.shows import shows


@shows("S3-106")
@pytest.mark.asyncio
async def test_a_topic_is_told_once_and_its_story_can_be_asked_for(tmp_path: Path) -> None:
    """Explained, accepted, sent as one message, found in the history; refused where it could not be sent."""
    to = {"channel": "fcm", "kind": "topic", "name": "news"}
    async with running(tmp_path, workers=1) as service:
        _, explained = await service.ask("POST", "/v1/explain", {"to": to, "title": "News"})
        (target,) = explained["targets"]
        assert (target["device_id"], target["channel"], target["suppressed"]) == ("fcm:topic:news", "fcm", None)
        once = {"to": to, "title": "News", "dedup_window": 60}
        status, told = await service.ask("POST", "/v1/notifications", once)
        assert status == 202

        async def ended() -> Json | None:
            _, detail = await service.ask("GET", f"/v1/notifications/{told['id']}")
            return detail if detail["notification"]["status"] == "sent" else None

        detail = await until(ended, "the topic is told")
        (receipt,) = detail["receipts"]
        assert (receipt["device_id"], receipt["status"]) == ("fcm:topic:news", "sent")
        assert receipt["provider_id"]
        assert len(await service.lab.arrivals(told["id"])) == 1
        _, history = await service.ask("GET", "/v1/notifications?user_id=fcm:topic:news")
        assert [each["id"] for each in history["items"]] == [told["id"]]
        status, repeated = await service.ask("POST", "/v1/notifications", once)
        assert (status, repeated["id"]) == (200, told["id"])
        for wrong in ({"channel": "fcm", "kind": "topic", "name": "no topic"}, to | {"kind": "channel"}):
            status, problem = await service.ask("POST", "/v1/notifications", {"to": wrong, "title": "News"})
            assert (status, problem["code"]) == (400, "invalid_request"), problem
