"""Every metric of delivery held against a run of which each number is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.telemetry.known_run import AWAY, GONE, REFUSED, RETRY_MS, USERS, WAIT_MS, known_run
from tests.shows import shows

pytestmark = pytest.mark.asyncio

SENT = USERS - GONE - REFUSED
ATTEMPTS = USERS + AWAY
PROVIDER = "app=demo lane=normal"


@shows("S3-82", "S3-83", "S3-84", "S3-85", "S3-90", "S3-92")
async def test_the_numbers_are_those_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand users: 40 tokens are dead, 30 messages refused, 30 reached by the second attempt alone."""
    async with known_run(tmp_path, monkeypatch) as run:
        await run.accept()
        await run.run()
        found = run.samples()

    settled = {word: found.get(f"waypost_settled_total {PROVIDER} settlement={word}") for word in ("sent", "again")}
    assert settled == {"sent": SENT, "again": AWAY}

    attempts = {
        word: found[f"waypost_attempts_total app=demo lane=normal outcome={word} provider=apns"]
        for word in ("taken", "gone", "refused", "unreachable")
    }
    assert attempts == {"taken": SENT, "gone": GONE, "refused": REFUSED, "unreachable": AWAY}
    assert sum(attempts.values()) == ATTEMPTS

    failed = {key: n for key, n in found.items() if key.startswith("waypost_failed_attempts_total ")}
    assert failed == {
        f"waypost_failed_attempts_total app=demo code={code} provider=apns": n
        for code, n in (("Unregistered", GONE), ("BadCollapseId", REFUSED), ("connect", AWAY))
    }

    assert found["waypost_leased_total lane=normal"] == ATTEMPTS
    assert found["waypost_delivery_seconds_count lane=normal"] == SENT
    waited_s = (SENT * WAIT_MS + AWAY * RETRY_MS) / 1_000
    assert found["waypost_delivery_seconds_sum lane=normal"] == pytest.approx(waited_s)
    assert found["waypost_delivery_seconds_bucket lane=normal le=2.5"] == SENT - AWAY
    assert found["waypost_delivery_seconds_bucket lane=normal le=5.0"] == SENT

    waiting = "waypost_open_deliveries lane=normal place=waiting"
    assert (run.waiting[waiting], found[waiting]) == (AWAY, 0)
    assert found["waypost_ledger_behind_seconds"] == 0

    commits = found["waypost_commit_seconds_count"]
    assert found["waypost_store_seconds_count query=register_device"] == USERS
    assert 0 < found["waypost_store_seconds_count query=settle"] <= commits
    assert found["waypost_store_seconds_count query=SqlDevices.for_users"] > 0
    assert found["waypost_store_seconds_sum query=SqlDevices.for_users"] > 0
    assert found["waypost_store_pool pool=reader"] == 2
    assert (found["waypost_store_pool_busy pool=reader"], found["waypost_store_pool_waiting pool=reader"]) == (0, 0)
