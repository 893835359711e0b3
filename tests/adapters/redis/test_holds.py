"""Dedup keys in Redis: what they weigh, and what they outlive."""

from __future__ import annotations

import asyncio
import hashlib

import msgspec
import pytest

from scripts.services.redis import Redis
from tests.adapters.redis.noted import Noted
from tests.contract.bench import by_content, notification
from tests.contract.clock import START
from tests.contract.stores import MemoryUnderTest
from tests.contract.test_holds import again, plain, said
from tests.shows import shows
from tests.tables import AddRow
from waypost.domain.dedup import content_hash
from waypost.domain.errors import Unavailable
from waypost.ports.holds import Held
from waypost.ports.work import Duplicate, NewNotification
from waypost.stores.kafka.accepting import Accepting
from waypost.stores.kafka.producer import Acknowledging
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames
from waypost.stores.redis.commands import RedisAway
from waypost.stores.redis.holds import RedisHolds
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Event, Silent

pytestmark = pytest.mark.asyncio


@shows("S1-115")
async def test_what_a_key_weighs(wire: SinglePrimary, table: AddRow) -> None:
    """Requirement S1-115: what the server itself counts, its tables of keys and expiries included."""
    holds = RedisHolds(wire, "waypost:")
    before = await used_bytes(wire)
    made = notification(START)
    claims = [by_content(notification(START, user=f"u{n}")) for n in range(20_000)]
    for page in range(0, len(claims), 1_000):
        await holds.confirm([(claim, made.id) for claim in claims[page : page + 1_000]])
    each = (await used_bytes(wire) - before) / len(claims)
    (alone,) = await wire.execute([("MEMORY", "USAGE", f"waypost:dedup:{claims[0].key.hex()}")])
    table("a dedup key in Redis", keys=len(claims), bytes_each=f"{each:.0f}", of_key_and_value=alone)
    assert 100 < each < 250


async def used_bytes(wire: SinglePrimary) -> int:
    """Of the data alone."""
    (told,) = await wire.execute([("INFO", "memory")])
    fields = dict(line.split(":", 1) for line in told.decode().splitlines() if ":" in line)
    return int(fields["used_memory_dataset"]) + int(fields["used_memory_overhead"])


@shows("S1-134")
async def test_a_crash_of_the_server_forgets_no_window(server: Redis, wire: SinglePrimary) -> None:
    """Requirement S1-134: with its append-only file, as it is set up."""
    holds = RedisHolds(wire, "waypost:")
    made = [said(f"b{n}") for n in range(50)]
    assert await holds.hold([plain(each) for each in made]) == [each.id for each in made]
    await holds.confirm([(by_content(each), each.id) for each in made])
    server.kill()
    server.start()
    repeats = [plain(again(each)) for each in made]
    assert await eventually(holds, repeats) == [Duplicate(each.id) for each in made]


async def eventually(holds: RedisHolds, arrivals: list[NewNotification]) -> list[Held]:
    """The answers of a server that comes back."""
    while True:
        try:
            return await holds.hold(arrivals)
        except RedisAway:
            await asyncio.sleep(0.01)  # nothing tells when the server is there again


@shows("S1-142")
async def test_two_doors_let_the_same_thing_in_once(server: Redis) -> None:
    """Each with a connection of its own: one of them accepts."""
    wires = [SinglePrimary(RedisSettings(url=server.url, timeout_s=5), Silent()) for _ in range(2)]
    for wire in wires:
        await wire.start()
    doors = [RedisHolds(wire, "waypost:") for wire in wires]
    made = [said(f"c{n}") for n in range(100)]
    answers = await asyncio.gather(*(door.hold([plain(again(each))]) for each in made for door in doors))
    accepted = [answer for (answer,) in answers if isinstance(answer, bytes)]
    assert len(accepted) == len(set(accepted)) == 100
    for wire in wires:
        await wire.stop()


@shows("S1-122", "S1-123")
async def test_what_is_closed_refuses_what_it_cannot_look_up(server: Redis, wire: SinglePrimary, noted: Noted) -> None:
    """Requirement S1-123; that the default lets it in is shown by the journey of the log stack."""
    settings = KafkaSettings(bootstrap="127.0.0.1:1", dedup_away="closed")
    views = MemoryUnderTest().views
    holds = RedisHolds(wire, "waypost:")
    server.stop()
    await noted.saw(Event.REDIS_AWAY)
    closed = Accepting(
        Acknowledging(settings), TopicNames(settings), holds, views, noted, may_open=False, records_claims=False
    )
    with pytest.raises(RedisAway):
        await closed.accept([plain(said("closed"))])
    assert Event.DEDUP_OPEN not in noted.events
    server.start()


@shows("S1-115")
async def test_a_full_server_takes_no_new_key_and_forgets_none(server: Redis, wire: SinglePrimary) -> None:
    """Requirement S1-115: what it may use bounds what is kept; what has no room counts as not looked up."""
    holds = RedisHolds(wire, "waypost:")
    made = [said(f"f{n}") for n in range(200)]
    await holds.confirm([(by_content(each), each.id) for each in made])
    server.ask(server.node(1), "CONFIG SET maxmemory 1mb")
    try:
        with pytest.raises(Unavailable):
            await holds.hold([plain(said("one more"))])
        repeats = await holds.hold([plain(again(each)) for each in made])
        assert repeats == [Duplicate(each.id) for each in made]
    finally:
        server.ask(server.node(1), "CONFIG SET maxmemory 0")
    new = said("one more")
    assert await holds.hold([plain(new)]) == [new.id]


@shows("S1-25")
async def test_a_key_is_stored_under_the_hash_of_who_says_what_to_whom(wire: SinglePrimary) -> None:
    """Requirement S1-25: ``dedup:`` and hex digits of a SHA-256 over app, caller, user and the content's hash."""
    made = said("stored")
    await RedisHolds(wire, "").confirm([(by_content(made), made.id)])
    parts = ["content", made.app, made.caller, made.user_id, content_hash(made.content)]
    digest = hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()
    (kept,) = await wire.execute([("EXISTS", f"dedup:{digest[:32]}")])
    assert kept == 1
