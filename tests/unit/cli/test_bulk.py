"""What the commands about bulk jobs print."""

from __future__ import annotations

from typing import Any

import pytest

from waypost.cli.bulk import _print

JOB: dict[str, Any] = {
    "id": "019c1234-5678-7abc-8def-0123456789ab",
    "state": "running",
    "failure": None,
    "enqueued": 3,
    "walked": False,
    "left_out": 0,
    "counts": {},
    "per_second": 1.0,
    "seconds_left": None,
}


def test_a_failed_job_is_shown_with_what_its_last_step_ended_with(capsys: pytest.CaptureFixture[str]) -> None:
    _print(JOB)
    assert "ended with" not in capsys.readouterr().out
    _print(JOB | {"state": "failed", "failure": "DataError"})
    assert "its last step ended with DataError" in " ".join(capsys.readouterr().out.split())
