"""Who owns which shard on PostgreSQL, whatever is lost between the server and a member."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from tests.contract.test_on_postgres import asked
from tests.journeys.harness import until
from waypost.domain.errors import Unavailable
from waypost.domain.ids import SHARDS
from waypost.stores.sql.faults import StoreFault
from waypost.stores.sql.postgres import membership
from waypost.stores.sql.postgres.connection import PostgresConnection, connect
from waypost.stores.sql.postgres.member_rows import LEASE_S
from waypost.stores.sql.postgres.membership import MARGIN_S, Membership
from waypost.stores.sql.postgres.peers import NotifyPeers

pytestmark = pytest.mark.engines

NO_PROCESS = 1 << 23
"""Above what Linux gives to any (proc(5), pid_max)."""


@pytest.mark.asyncio
async def test_who_delivers_nothing_knows_how_many_do(emptied_postgres: str) -> None:
    """A process that accepts alone is a member, and none of those among whom shards are shared."""
    members = [Membership(emptied_postgres, lambda fault: None) for _ in range(3)]
    accepting, first, second = members
    try:
        await accepting.attend()
        assert accepting.sharers() == 0
        await first.acquire(32)
        await second.acquire(64)
        assert (len(first.owned), len(second.owned), second.sharers()) == (32, 32, 2)
        await accepting._renew()
        assert (len(accepting.owned), accepting.sharers()) == (0, 2)
    finally:
        await asyncio.gather(*(each.close() for each in members))


@pytest.mark.asyncio
async def test_who_leaves_is_none_of_those_who_share(emptied_postgres: str) -> None:
    """The others know it with their next renewal, while it still has what is in flight."""
    members = [Membership(emptied_postgres, lambda fault: None) for _ in range(2)]
    leaving, staying = members
    try:
        await leaving.acquire(32)
        await staying.acquire(32)
        await leaving.leave()
        await leaving.release(list(leaving.owned)[1:])
        await staying._renew()
        assert (staying.sharers(), leaving.sharers()) == (1, 1)
        await staying.acquire(64)
        assert (len(leaving.owned), len(staying.owned)) == (1, 63)
    finally:
        await asyncio.gather(*(each.close() for each in members))


@pytest.mark.asyncio
async def test_a_role_that_comes_as_the_membership_ends_is_not_held(emptied_postgres: str) -> None:
    """The row is deleted in between, as one of a worker that stood still: the next to ask has the role alone."""
    late, other = (Membership(emptied_postgres, lambda _: None) for _ in range(2))
    run = late._run

    async def ended_meanwhile(act: Callable[[PostgresConnection], Any]) -> Any:
        found = await run(act)
        if act.__name__ == "take":
            asked(emptied_postgres, "DELETE FROM member RETURNING id")
            await late._renew()
        return found

    late._run = ended_meanwhile  # type: ignore[method-assign] # what comes between two statements
    assert not await late.take_role("sweep")
    assert await other.take_role("sweep")
    await late.close()
    await other.close()


@pytest.mark.asyncio
async def test_a_shard_is_nobodys_for_no_longer_than_until_the_next_renewal(emptied_postgres: str) -> None:
    """The server is lost while shards are let go of, are lent, given back, or while the answer of a taking is due."""
    faulty, other = (Membership(emptied_postgres, lambda _: None) for _ in range(2))

    async def lost(act: Callable[[], Awaitable[object]]) -> None:
        asked(emptied_postgres, f"SELECT pg_terminate_backend({backend_of(faulty)})")
        with pytest.raises(Unavailable):
            await act()
        await faulty._renew()

    try:
        await faulty.acquire(40)
        gone = sorted(faulty.owned)[:8]
        await lost(lambda: faulty.release(gone))
        assert len(faulty.owned) == 32
        assert len(await other.acquire(32)) == 32

        await other.release(sorted(other.owned)[:8])
        borrowed = await faulty.borrow(range(SHARDS))
        assert len(borrowed.shards) == 8
        await faulty._renew()
        assert await other.acquire(32) == [], "it is still lent"
        await lost(borrowed.give_back)
        assert len(await other.acquire(32)) == 8

        await other.release(sorted(other.owned)[:8])
        take = faulty._take_free

        def answer_lost(wanted: int, connection: PostgresConnection) -> list[int]:
            take(wanted, connection)
            asked(emptied_postgres, f"SELECT pg_terminate_backend({backend_of(faulty)})")
            return take(wanted, connection)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(faulty, "_take_free", answer_lost)
            with pytest.raises(Unavailable):
                await faulty.acquire(40)
        assert await other.acquire(32) == []
        await faulty._renew()
        assert len(await other.acquire(32)) == 8
        assert len(faulty.owned | other.owned) == SHARDS
    finally:
        await asyncio.gather(faulty.close(), other.close())


@pytest.mark.asyncio
async def test_a_shard_that_the_server_forgot_is_not_worked_on(emptied_postgres: str) -> None:
    """As after a crash of a server that was told not to wait for its disk."""
    member = Membership(emptied_postgres, lambda _: None)
    try:
        await member.acquire()
        version = member.version
        asked(emptied_postgres, "UPDATE ownership SET member = NULL WHERE shard < 4 RETURNING shard")
        await member._renew()
        assert (len(member.owned), member.version != version) == (SHARDS - 4, True)
    finally:
        await member.close()


@pytest.mark.asyncio
async def test_a_connection_that_is_lost_alone_is_no_server_that_is_away(emptied_postgres: str) -> None:
    """As those to the primary of before, when its standby was promoted: nobody is refused for them."""
    faults: list[StoreFault] = []
    member, peers = Membership(emptied_postgres, faults.append), NotifyPeers(emptied_postgres, None, faults.append)
    try:
        await member.acquire(8)
        asked(emptied_postgres, f"SELECT pg_terminate_backend({backend_of(member)}, 5000)")
        with pytest.raises(Unavailable):
            await member.acquire(16)
        assert len(await member.acquire(16)) == 8
        assert await asyncio.to_thread(peers._told, ["me topic "])
        assert peers._telling is not None
        asked(emptied_postgres, f"SELECT pg_terminate_backend({peers._telling.raw.info.backend_pid}, 5000)")
        peers._untold = {"me topic ": None}
        await asyncio.to_thread(peers._tell)
        assert faults == []
    finally:
        await member.close()
        await peers.stop()


@pytest.mark.asyncio
async def test_whoever_was_buried_by_others_becomes_a_member_anew(
    emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its next renewal it takes a share, borrows, or asks for a role: no surprise of the stage that does so."""
    monkeypatch.setattr(membership, "RENEW_S", 600.0)
    member = Membership(emptied_postgres, lambda _: None)
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: member.acquire(16),
        lambda: member.borrow(range(8)),
        lambda: member.acquire(16),
    ]
    try:
        for act in acts:
            await member.acquire(8)
            before = member.member()
            asked(emptied_postgres, "DELETE FROM member RETURNING id")
            with pytest.raises(Unavailable):
                await act()
            assert (member.owned, member.member()) == (frozenset(), None)
            assert len(await member.acquire(8)) == 8
            assert member.member() not in (None, before)
    finally:
        await member.close()


@pytest.mark.asyncio
async def test_a_process_that_cannot_be_seen_from_here_is_alive_until_its_time_is_over(
    emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another user, or behind ``ProtectProc=invisible``: the server's clock judges, or the supervisor of both."""
    unseen, other = (Membership(emptied_postgres, lambda _: None) for _ in range(2))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("waypost.stores.sql.postgres.membership.os.getpid", lambda: NO_PROCESS)
        await unseen.acquire(40)
    try:
        assert len(await other.acquire(SHARDS)) == 24
        other.ended(b"%d" % NO_PROCESS)
        assert other._burying is not None
        await other._burying
        assert other.sharers() == 1
        assert len(await other.acquire(SHARDS)) == 40
        await unseen._renew()
        assert unseen.owned == frozenset()
    finally:
        await asyncio.gather(unseen.close(), other.close())


@pytest.mark.asyncio
async def test_a_number_that_was_given_twice_is_not_taken_for_ones_own(emptied_postgres: str) -> None:
    """A standby that was promoted may know nothing of the last members, and give their numbers again."""
    first = Membership(emptied_postgres, lambda _: None)
    try:
        await first.acquire(8)
        number = first.member()
        asked(emptied_postgres, "UPDATE member SET started = started + 1 RETURNING id")
        await first._renew()
        assert first.member() not in (None, number)
        assert first.owned == frozenset()
    finally:
        await first.close()


def backend_of(member: Membership) -> int:
    """The process that serves its connection."""
    assert member._connection is not None
    return member._connection.raw.info.backend_pid


@pytest.mark.asyncio
async def test_who_listens_leaves_no_reader_behind_when_the_server_is_lost(emptied_postgres: str) -> None:
    """The next connection gets the number of the one that was lost, and would be refused: of a provider, as it was."""
    peers = NotifyPeers(emptied_postgres, None, lambda _: None)
    await peers.start()
    try:
        lost = peers._listening
        assert lost is not None
        number = lost.raw.fileno()
        asked(emptied_postgres, f"SELECT pg_terminate_backend({lost.raw.info.backend_pid})")

        async def is_forgotten() -> bool:
            return peers._listening is not lost

        await until(is_forgotten, "the loss was noticed")
        heard_again = peers._listening is not None and peers._heard == number
        assert heard_again or not asyncio.get_running_loop().remove_reader(number)
    finally:
        await peers.stop()


@pytest.mark.asyncio
async def test_who_is_not_heard_of_stops_a_margin_before_the_others_may_take_over(
    emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease counts from when it was asked for, after joining and after each renewal; time is the test's."""
    now_s = [1_000.0]
    monkeypatch.setattr(membership, "_now_s", lambda: now_s[0])
    monkeypatch.setattr(membership, "RENEW_S", 3_600.0)
    member = Membership(emptied_postgres, lambda _: None)
    run = member._run

    async def slow(act: Callable[[PostgresConnection], Any]) -> Any:
        found = await run(act)
        now_s[0] += 1.0
        return found

    member._run = slow  # type: ignore[method-assign] # the server takes a second for each answer
    try:
        for ask in (member.acquire, member._renew):
            asked_s = now_s[0]
            await ask()
            now_s[0] = asked_s + LEASE_S - MARGIN_S - 0.01
            assert len(member.owned) == SHARDS and member.member() is not None
            version = member.version
            now_s[0] = asked_s + LEASE_S - MARGIN_S
            assert member.owned == frozenset() and member.member() is None and member.version != version
    finally:
        await member.close()


@pytest.mark.asyncio
async def test_nobody_takes_over_in_the_middle_of_a_transaction(emptied_postgres: str) -> None:
    """What is settled locks the row of its member until it is committed."""
    member = Membership(emptied_postgres, lambda _: None)
    delete = "SET lock_timeout = '50ms'; DELETE FROM member"
    try:
        await member.acquire()
        with contextlib.closing(connect(emptied_postgres)) as settling:
            settling.execute("BEGIN")
            assert member.fence(settling) == member.owned
            with pytest.raises(psycopg.errors.LockNotAvailable):
                asked(emptied_postgres, delete)
            settling.execute("COMMIT")
    finally:
        await member.close()


@pytest.mark.asyncio
async def test_a_role_has_one_holder_until_that_one_ends(emptied_postgres: str) -> None:
    """It holds it for as long as it asks; the next has it once it has gone."""
    first, second, third = (Membership(emptied_postgres, lambda _: None) for _ in range(3))
    try:
        assert [await each.take_role("sweep") for each in (first, second, first)] == [True, False, True]
        await first.close()
        assert await third.take_role("sweep")
    finally:
        await asyncio.gather(second.close(), third.close())


@pytest.mark.asyncio
async def test_after_an_outage_everybody_has_a_leases_time_to_be_heard_of(
    emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lease could be renewed meanwhile; who is silent then is gone, on whatever machine it was."""
    now_s = [1_000.0]
    monkeypatch.setattr(membership, "_now_s", lambda: now_s[0])
    monkeypatch.setattr(membership, "RENEW_S", 3_600.0)
    silent, other = (Membership(emptied_postgres, lambda _: None) for _ in range(2))
    try:
        await silent.acquire(32)
        await other.acquire(64)
        over = "UPDATE member SET until = clock_timestamp() - interval '1 second'"
        asked(emptied_postgres, f"{over} WHERE id = {silent.member()} RETURNING id")
        assert await other.acquire(64) == []
        now_s[0] += LEASE_S + 0.01
        assert len(await other.acquire(64)) == 32
    finally:
        await asyncio.gather(silent.close(), other.close())
