"""The log stack as real processes on a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.journeys.harness import running, until
from tests.journeys.load import Audience

pytestmark = pytest.mark.asyncio


def log_stack(bootstrap: str, prefix: str) -> dict[str, Any]:
    """Settings of a small log on one broker."""
    kafka = {
        "bootstrap": bootstrap,
        "prefix": prefix,
        "group": f"{prefix}workers",
        "partitions": 2,
        "replication": 1,
        "trial": True,
        "session_timeout_s": 6,
    }
    return {"stack": "log", "kafka": kafka}


async def test_a_notification_goes_through_the_log(tmp_path: Path, kafka_bootstrap: str, kafka_prefix: str) -> None:
    """Accepted, delivered, settled and recorded: what was answered 202 reads ``sent``."""
    async with running(tmp_path, workers=1, **log_stack(kafka_bootstrap, kafka_prefix)) as service:
        audience = Audience(service)
        await audience.register(1, (("ios", "android"),))
        status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "user-0", "title": "Hello"})
        assert status == 202
        status, found = await service.ask("GET", f"/v1/notifications/{answer['id']}")
        assert (status, found["notification"]["status"]) in {(200, "pending"), (200, "processing"), (200, "sent")}

        async def sent() -> bool:
            _, found = await service.ask("GET", f"/v1/notifications/{answer['id']}")
            notification = found["notification"]
            return bool(notification["status"] == "sent" and notification["recorded"])

        await until(sent, "the receipt")
        assert len((await service.lab.copies())[answer["id"]]) == 2
