"""Analytics by the command line: tables for people, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from waypost.cli import waypost
from waypost.client import Client

COUNTS = {"sent": 200, "delivered": 150, "read": 60, "opened": 50, "action_taken": 5}
SHARES = {"delivery_rate": 0.75, "read_rate": 0.3, "open_rate": 0.25, "conversion_rate": 0.025}
ROW: dict[str, Any] = {"label": None, "start": None, **COUNTS, **SHARES}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the API was asked; it answers with one row."""
    questions: list[dict[str, Any]] = []

    def analytics(_client: Client, question: str, **query: Any) -> Any:
        questions.append({"question": question, **{name: value for name, value in query.items() if value is not None}})
        steps = [{"event": "sent", "count": 200, "of_sent": 1.0, "of_before": 1.0}]
        return {
            "rates": {"rows": [ROW | ({"label": "=1+1"} if query.get("by") else {})]},
            "funnel": {"funnels": [{"label": "spring-sale", "steps": steps}]},
            "events": {"rows": []},
        }[question]

    monkeypatch.setattr(Client, Client.analytics.__name__, analytics)
    monkeypatch.setattr(
        Client,
        Client.best_hour.__name__,
        lambda _client, user_id, segment: {"hour": 9, "zone": "UTC", "based_on": "app", "rate": 0.5},
    )
    monkeypatch.setenv("WAYPOST_API_KEY", "wp_any")
    return questions


def shown(*words: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(waypost, ["analytics", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_rates_are_a_table_of_what_there_is(asked: list[dict[str, Any]]) -> None:
    lines = shown("rates", "--type", "promotion", "--every", "day", "--zone", "Asia/Tokyo").splitlines()
    assert lines[-1].split() == ["200", "150", "60", "50", "5", "75.00%", "30.00%", "25.00%", "2.50%"]
    of = {"of": "notifications", "zone": "Asia/Tokyo"}
    assert asked == [{"question": "rates", "type": "promotion", "every": "day", **of}]


def test_csv_has_every_column_and_no_formula(asked: list[dict[str, Any]]) -> None:
    (row,) = csv.DictReader(io.StringIO(shown("rates", "--by", "campaign", "--csv")))
    assert (row["start"], row["label"], row["sent"], row["open_rate"]) == ("", "'=1+1", "200", "0.25")


@pytest.mark.usefixtures("asked")
def test_parquet_has_a_type_for_each_column_whatever_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "rates.parquet"
    assert "1 rows" in shown("rates", "--by", "campaign", "--parquet", str(file))
    table = pq.read_table(file)
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["start"], types["label"], types["sent"], types["open_rate"]) == (
        "timestamp[ms, tz=UTC]",
        "string",
        "int64",
        "double",
    )
    (row,) = table.select(["start", "label", "sent", "open_rate"]).to_pylist()
    assert row == {"start": None, "label": "=1+1", "sent": 200, "open_rate": 0.25}
    funnel = tmp_path / "funnel.parquet"
    shown("funnel", "--parquet", str(funnel))
    assert pq.read_table(funnel)["event"].to_pylist() == ["sent"]


def test_a_funnel_is_of_one_campaign(asked: list[dict[str, Any]]) -> None:
    assert shown("funnel", "--campaign", "spring-sale").splitlines()[-1].split() == [
        "spring-sale",
        "sent",
        "200",
        "100.00%",
        "100.00%",
    ]


def test_nothing_is_said_to_be_nothing(asked: list[dict[str, Any]]) -> None:
    assert shown("events").startswith("nothing was counted")
    assert shown("best-hour", "ada") == "09:00 UTC: the app's users open 50.00% then\n"
