"""The plan in docs/internals/capacity.md adds up: what a row weighs, times how many there are."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from scripts.plan import Figures, plan_of
from tests.shows import shows
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.bulk import PIECE, PIECES_LIMIT
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.entrypoints.live.settings import FeedSettings
from waypost.pipeline.expand import WAITING_LIMIT
from waypost.runtime.clock import SystemClock
from waypost.telemetry import Silent

INTERNALS = Path(__file__).parents[2] / "docs" / "internals"
PAGE = (INTERNALS / "capacity.md").read_text(encoding="utf-8")
PERFORMANCE = (INTERNALS / "performance.md").read_text(encoding="utf-8")
UNITS = {"B": 1, "MB": 10**6, "GB": 10**9, "TB": 10**12}
APNS = ApnsSettings(key_file="none", key_id="ABCDE12345", team_id="FGHIJ67890", topic="com.example.demo")
A_DAY = 100_000_000
DEVICES_A_USER = 2.5


def sizes(first: str) -> list[float | None]:
    """The sizes in the row that begins with *first*, by its columns; of a sum, what it comes to."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {first}")]
    found = [re.findall(r"([\d.]+) ([MGT]?B)\b", cell) for cell in row.strip("|").split("|")[1:]]
    return [float(each[0][0]) * UNITS[each[0][1]] if each else None for each in found]


@shows("S1-110", "S1-111", "S1-112", "S1-113")
@pytest.mark.parametrize(
    ("total", "one", "count"),
    [
        ("receipts, 90 days", "receipt |", A_DAY * DEVICES_A_USER * 90),
        ("receipts, a month", "receipt |", A_DAY * DEVICES_A_USER * 30),
        ("notifications with content, 90 days", "notification, content", A_DAY * 90),
        ("keys of a day", "dedup key |", A_DAY),
        ("keys of five minutes", "dedup key |", A_DAY * 300 / 86_400),
        ("a billion devices", "device |", 10**9),
    ],
)
def test_what_is_kept_adds_up(total: str, one: str, count: float) -> None:
    """Requirements S1-110 to S1-113: the plan's own rows and ours, to what two digits say."""
    held = 0
    for all_of_it, weight in zip(sizes(total), sizes(one), strict=True):
        if all_of_it is not None and weight is not None:
            assert all_of_it == pytest.approx(weight * count, rel=0.03), total
            held += 1
    assert held >= 2


@shows("S1-108")
def test_rates_follow_from_a_hundred_million_a_day() -> None:
    """Requirements S1-108, S1-109: the average, and ten times that at the peak."""
    average, tasks = A_DAY / 86_400, A_DAY * DEVICES_A_USER / 86_400
    sentence = r"([\d,]+) notifications and ([\d,]+) deliveries a second on average, ten times\s+as many at the peak: "
    said = re.search(sentence + r"([\d,]+) and ([\d,]+)\.", PAGE)
    assert said is not None
    assert [int(each.replace(",", "")) for each in said.groups()] == [
        pytest.approx(figure, rel=0.001) for figure in (average, tasks, average * 10, tasks * 10)
    ]


@shows("S1-116", "S1-117")
def test_what_providers_carry_follows_from_their_connections() -> None:
    """Requirements S1-116, S1-117: what four dispatchers need, and what their settings open."""
    plan = plan_of(Figures())
    apns, fcm = (next(line for line in PAGE.splitlines() if line.startswith(f"| {name} |")) for name in ("APNs", "FCM"))
    said = re.search(r"4 replicas, ([\d,]+) requests/s each, ([\d,]+) streams: (\d+) % used", apns)
    assert said is not None
    a_dispatcher, streams, used = (int(each.replace(",", "")) for each in said.groups())
    opened = ApnsSender(CredentialId.of(AppId("demo"), "apns"), APNS, clock=SystemClock(), telemetry=Silent())
    assert streams == opened.capabilities.max_in_flight == Figures().apns_streams
    assert a_dispatcher == pytest.approx(plan.dispatcher_deliveries, rel=0.001)
    assert used == round(100 * plan.apns_streams_used)
    said = re.search(r"(\d+) groups of 500 a second, 100 in flight", fcm)
    assert said is not None
    assert int(said[1]) == round(plan.fcm_groups)
    said = re.search(r"([\d,]+) messages/s each; 60 % of 28,930/s need (\d+) connections, five a machine", fcm)
    assert said is not None
    connections = math.ceil(0.6 * plan.peak_deliveries / plan.fcm_connection)
    assert [int(each.replace(",", "")) for each in said.groups()] == [plan.fcm_connection, connections]
    assert math.ceil(connections / 4) <= FcmSettings(service_account_file="none").connections


def test_the_script_computes_the_plan_of_the_page() -> None:
    """Rates, cores and receipts, for a hundred million a day and a hundred times as many."""
    plan, large = plan_of(Figures()), plan_of(Figures(a_day=100 * A_DAY))
    cores = re.search(r"\| SQLite: one machine.*?\| ([\d.]+) \|", PAGE)
    assert cores is not None
    assert plan.cores_at_peak == pytest.approx(float(cores[1]), abs=0.05)
    assert f"{large.notifications:,.0f} notifications" in PAGE
    assert f"{round(large.receipts_tb):,} TB" in PAGE


@shows("S1-119")
def test_a_broadcast_to_400_million_follows_from_its_pieces() -> None:
    """Requirement S1-119: pieces, what waits of them, and the hours at the peak."""
    section = PAGE.split("### A broadcast to 400 million users")[1].split("\n### ")[0]
    users, peak = 400_000_000, A_DAY * DEVICES_A_USER * 10 / 86_400
    said = [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", section)]
    for figure in (users // PIECE, PIECE, WAITING_LIMIT, WAITING_LIMIT // PIECE, users // 10_000, PIECES_LIMIT):
        assert float(figure) in said, figure
    assert users // PIECE < PIECES_LIMIT
    hours = users * DEVICES_A_USER / peak / 3_600
    assert any(each == pytest.approx(hours, rel=0.01) for each in said), hours


@shows("S2-14")
def test_ten_million_connections_fit_on_20_machines() -> None:
    """Requirement S2-14: by what one takes, as the bench measured it."""
    section = PAGE.split("### Ten million live connections")[1].split("\n### ")[0]
    measured = re.search(r"15,000 web sockets.*?\| ([\d.]+) KiB;", PERFORMANCE)
    assert measured is not None
    a_machine = 10_000_000 // 20
    workers = a_machine // FeedSettings().connections_limit
    connections, processes = a_machine * float(measured[1]) * 1024, workers * 100 * 10**6
    said = re.search(
        r"([\d,]+) connections a machine, (\d+) workers.*?a machine ([\d.]+) GB.*?: ([\d.]+) GB of", section, re.S
    )
    assert said is not None
    assert (int(said[1].replace(",", "")), int(said[2])) == (a_machine, workers)
    assert float(said[3]) == pytest.approx(connections / 10**9, rel=0.01)
    assert float(said[4]) == pytest.approx((connections + processes) / 10**9, rel=0.01)
    assert float(said[4]) <= 25


@shows("S1-145")
def test_a_hundred_times_as_much_follows_from_the_same() -> None:
    """Requirements S1-145: its figures are those of the plan, times a hundred."""
    section = PAGE.split("### A hundred times as much")[1].split("\n## ")[0]
    said = re.search(r"([\d,]+) notifications and ([\d,]+) deliveries a second on average", section)
    assert said is not None
    found = [int(each.replace(",", "")) for each in said.groups()]
    assert found == [pytest.approx(100 * A_DAY * n / 86_400, rel=0.001) for n in (1, DEVICES_A_USER)]
    receipts = [float(size) * UNITS["TB"] for size in re.findall(r"([\d.]+) TB", section)[:2]]
    weights = [each or 0 for each in sizes("receipt |")[:2]]
    assert receipts == [pytest.approx(100 * A_DAY * DEVICES_A_USER * 90 * each, rel=0.01) for each in weights]
    for step in ("region", "channel", "receipts", "log"):
        assert re.search(rf"^\| .*{step}.* \| .+ \| .+ \|$", section, re.MULTILINE), step
