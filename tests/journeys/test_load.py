"""The loads of `make load`: a small one, whose order of things is tried, and the full figures in the long form."""

from __future__ import annotations

import pytest

from benchmarks import bulk
from benchmarks.load import refresh, sustained, users
from benchmarks.load.setup import Setup
from benchmarks.programs import MissingProgram, in_rust
from tests.crowded import is_crowded
from tests.journeys.harness import until
from tests.shows import shows
from tests.tables import AddRow
from waypost.bench.programs import OWN
from waypost.bench.rows import Row
from waypost.bench.stack import running, settled

USERS, VIPS, SINGLE = 60, 20, 20
RETRY_AFTER_S = 1
LONG_S = 60.0
WANTED_PER_S = 1_000
WANTED_USERS = 10_000
ENOUGH = 0.98
"""Of what is due in a second, accepted: the last ones are answered a moment after they were due."""
MOST = 0.9
"""Of it, sent: the last retry of a throttled device is some seconds after a minute."""
MIB_A_PROCESS = 200


@shows("S3-129", "S3-130")
@pytest.mark.asyncio
async def test_a_campaign_and_what_comes_meanwhile_outlast_a_storm_of_429() -> None:
    """Its queue grows while every provider throttles, single notifications are accepted meanwhile, and all drains."""
    with running(OWN, 1, USERS, vips=VIPS) as stack:
        stack.gateway.storm(RETRY_AFTER_S)
        job = bulk.begin(stack)

        async def all_wait() -> bool:
            return bulk.waiting(stack, job) == USERS + VIPS and stack.gateway.total("throttled") > USERS

        await until(all_wait, "the queue has grown to all recipients, and providers have refused them")
        seen = stack.load(count=SINGLE, users=VIPS, prefix="vip-", connections=4).result()
        assert seen["statuses"] == {"202": SINGLE}, "intake does not wait for the queue"
        assert stack.gateway.total("accepted", "dead") == 0, "nothing has left before they were accepted"
        stack.gateway.storm(0)

        async def is_finished() -> bool:
            return bulk.state(stack, job) == "finished"

        await until(is_finished, "the queue has drained")
        ledger = settled(stack, USERS + VIPS + SINGLE)
        assert ledger.open == bulk.waiting(stack, job) == 0
        assert set(ledger.notifications) <= {"sent", "partial"}, "partial is for a device whose token is dead"


@shows("S3-125")
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_thousand_a_second_for_a_minute(table: AddRow) -> None:
    """Requirement S3-125: as many are accepted as are due, and store and gateway agree on each."""
    rows = sustained.run(_full())
    table("load", **{row["name"]: str(row["value"]) for row in rows})
    assert rows[0]["value"] >= ENOUGH * WANTED_PER_S
    if not is_crowded():
        assert _value(rows, "sent a second, until the last was") >= MOST * WANTED_PER_S


@shows("S3-126")
@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_users_at_the_same_moment(table: AddRow) -> None:
    """Requirement S3-126: each has a web socket, a request due at that moment, and devices; each is told once."""
    rows = users.run(_full())
    table("load", **{row["name"]: str(row["value"]) for row in rows})
    assert _value(rows, "accepted") == _value(rows, "entries that their web sockets got") == WANTED_USERS


@shows("S3-127")
@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_devices_refresh_at_the_same_moment(table: AddRow) -> None:
    """Requirement S3-127: each has its newest token, all are answered, and the service stays within its memory."""
    setup = _full()
    rows = refresh.run(setup)
    table("load", **{row["name"]: str(row["value"]) for row in rows})
    assert _value(rows, "devices with exactly their newest token") == WANTED_USERS
    assert _value(rows, "memory of all processes, after") <= MIB_A_PROCESS * (setup.workers + 1)


def _full() -> Setup:
    """The figures that are asked for, for a minute instead of ten."""
    try:
        setup = Setup(in_rust(), LONG_S)
    except MissingProgram as absent:
        pytest.skip(f"{absent} is not installed")
    assert (setup.per_s, setup.users) == (WANTED_PER_S, WANTED_USERS)
    return setup


def _value(rows: list[Row], name: str) -> float:
    (value,) = (row["value"] for row in rows if row["name"] == name)
    return value
