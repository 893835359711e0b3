"""What PostgreSQL waits for its disk with, as the server itself sees it in each transaction."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.amending import withdraw
from tests.contract.bench import intent, notification, sent, targets
from tests.contract.clock import StoppedClock
from waypost.domain.amendment import Withdrawn
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql.claims.held import Held
from waypost.stores.sql.claims.work import ClaimedWork
from waypost.stores.sql.settings import Durability, SqlSettings
from waypost.stores.sql.store import open_store
from waypost.telemetry import Silent

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]

_WATCH = """\
CREATE TABLE seen (id bigserial, wrote text, setting text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seen (wrote, setting) VALUES
        (TG_ARGV[0] || ' ' || NEW.status, current_setting('synchronous_commit'));
    RETURN NULL;
END $$;
CREATE TRIGGER see_notification AFTER INSERT OR UPDATE ON notification
    FOR EACH ROW EXECUTE FUNCTION see('notification');
CREATE TRIGGER see_receipt AFTER INSERT OR UPDATE ON receipt FOR EACH ROW EXECUTE FUNCTION see('receipt');
"""
_END = "DROP FUNCTION see CASCADE; DROP TABLE seen"


@pytest.fixture
def watched(emptied_postgres: str) -> Iterator[psycopg.Connection[tuple[str, str]]]:
    """A connection to a database which notes in ``seen`` under what setting each row was written."""
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        connection.execute(_WATCH)
        yield connection
        connection.execute(_END)


async def _work(url: str, durability: Durability) -> None:
    """Accept, put on record, settle and take back, each in a commit of its own."""
    clock = StoppedClock()
    settings = SqlSettings(url, durability=durability)
    store = await open_store(settings, clock=clock, peers=None, telemetry=Silent())
    try:
        await store.shards.acquire()
        await _write_each(ClaimedWork(store, clock, Held()), clock)
    finally:
        await store.close()


async def _write_each(work: ClaimedWork, clock: StoppedClock) -> None:
    now = clock.now()
    made = notification(now, guarantee=Guarantee.AT_MOST_ONCE)
    await work.accept([NewNotification(made)])
    lease = await work.lease(Lane.NORMAL, 10, later(now, MINUTE_MS))
    assert await work.settle(lease, [Settled(made, (intent(0, now),), targets(1))]) == []
    assert await work.settle(lease, [Settled(made, (sent(0, now),))]) == []
    other = notification(now)
    await work.accept([NewNotification(other)])
    assert await withdraw(work, other.app, [other.id], "cancelled", now) == [Withdrawn(0)]


def _seen(connection: psycopg.Connection[tuple[str, str]]) -> dict[str, set[str]]:
    """The settings under which each kind of row was written."""
    seen: dict[str, set[str]] = {}
    for wrote, setting in connection.execute("SELECT wrote, setting FROM seen"):
        seen.setdefault(wrote, set()).add(setting)
    return seen


@pytest.mark.parametrize("default", ["on", "off"])
async def test_the_disk_is_waited_for_by_what_is_answered_and_by_no_outcome(
    watched: psycopg.Connection[tuple[str, str]], emptied_postgres: str, default: str
) -> None:
    """Whatever the server's own default is."""
    separator = "&" if "?" in emptied_postgres else "?"
    url = f"{emptied_postgres}{separator}options=-c%20synchronous_commit%3D{default}"
    await _work(url, Durability.POWER)
    seen = _seen(watched)
    assert seen["notification pending"] == {"on"}
    assert seen["receipt unknown"] == {"on"}, "an intent"
    assert seen["receipt sent"] == {"off"}
    assert seen["notification cancelled"] == {"on"}


async def test_who_only_wants_to_outlive_its_process_waits_for_no_disk(
    watched: psycopg.Connection[tuple[str, str]], emptied_postgres: str
) -> None:
    await _work(emptied_postgres, Durability.PROCESS)
    assert set().union(*_seen(watched).values()) == {"off"}
