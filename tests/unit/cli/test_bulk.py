"""What the commands about bulk jobs print."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from waypost.cli import waypost
from waypost.cli.bulk import _print
from waypost.client import Client

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


@pytest.mark.parametrize("named", [("--segment", "lapsed"), ("--topic", "results")])
def test_a_job_is_to_the_segment_or_the_topic_that_is_named(
    named: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def send_bulk(_client: Client, job: dict[str, Any], _key: str | None) -> dict[str, Any]:
        asked.append(job)
        return JOB

    monkeypatch.setattr(Client, Client.send_bulk.__name__, send_bulk)
    monkeypatch.setenv("WAYPOST_API_KEY", "wp_any")
    done = CliRunner().invoke(waypost, ["bulk", "send", "--title", "Hello", *named])
    assert done.exit_code == 0, done.output
    assert [job["to"] for job in asked] == [{named[0].removeprefix("--"): named[1]}]
