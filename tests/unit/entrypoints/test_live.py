"""Live connections: what a reader was told is all there is, once and in order, wherever the connection is cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.unit.entrypoints.live_bench import ANN, Bench, entries_in, named, said, settled
from waypost.domain.content import Content, TemplateUse
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Notification
from waypost.entrypoints.live.chain import MESSAGE_BYTES
from waypost.entrypoints.live.connection import EventStream
from waypost.entrypoints.live.hub import NAMED_LIMIT
from waypost.entrypoints.live.news import NEWS_LIMIT
from waypost.entrypoints.live.outward import Broadcast
from waypost.entrypoints.rest import cursors
from waypost.ports.feed import Entry, Mark
from waypost.ports.peers import Answerer
from waypost.runtime.peers import NoPeers

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    await made.hub.start()
    yield made
    await made.hub.stop()


async def test_who_connects_is_greeted_and_told_what_comes_then(bench: Bench) -> None:
    await bench.bring(2)
    wire = bench.join()
    await settled()
    (hello,) = said(wire.written)
    assert (hello["type"], hello["unread"], hello["unseen"]) == ("hello", 2, 2)
    third = await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == third


async def test_a_session_that_is_cut_at_any_byte_goes_on_without_a_gap_or_a_repeat(bench: Bench) -> None:
    """What comes while it is away, and while it is coming back, too."""
    whole = await session(bench, None)
    for cut_at in range(1, whole + 1):
        await session(bench, cut_at)


async def session(bench: Bench, cut_at: int | None) -> int:
    """Read, be cut after so many bytes, go on from what was read whole; return how many bytes were written before."""
    (counts,) = await bench.feed.counts([ANN])
    since = cursors.of_place(counts.newest)
    first = bench.join(since=since, cut_at=cut_at)
    await settled()
    known = await bench.bring()
    await settled()
    known += await bench.bring()
    await settled()
    written = len(first.written)
    read = said(first.written)
    first.close()
    known += await bench.bring()
    second = bench.join(since=read[-1]["cursor"] if read else since)
    known += await bench.bring()
    await settled()
    assert entries_in(read) + entries_in(said(second.written)) == known, cut_at
    second.close()
    await bench.feed.erase(*ANN)
    return written


async def test_who_names_a_place_of_before_the_store_was_moved_lists_the_feed(bench: Bench) -> None:
    await bench.bring()
    wire = bench.join(since=cursors.of_place(10**9))
    await settled()
    known = await bench.bring()
    await settled()
    assert [each["type"] for each in said(wire.written)] == ["hello", "fetch", "entry"]
    assert entries_in(said(wire.written)) == known


@pytest.mark.parametrize("place", [-(10**15), -1, 0, 1, 10**15])
async def test_a_cursor_holds_any_place(place: int) -> None:
    assert cursors.place(cursors.of_place(place)) == place


async def test_who_missed_too_much_is_told_to_list_the_feed(bench: Bench) -> None:
    await bench.bring(NEWS_LIMIT + 5, tells=False)
    wire = bench.join(since=cursors.of_place(0))
    await settled()
    last = await bench.bring()
    await settled()
    assert [each["type"] for each in said(wire.written)] == ["hello", "fetch", "entry"]
    assert entries_in(said(wire.written)) == last


class Wires:
    """What processes tell each other, where it arrives."""

    def __init__(self) -> None:
        self.ends: list[End] = []
        self.is_lost = False

    def end(self) -> End:
        """The end of another process."""
        self.ends.append(End(self))
        return self.ends[-1]


class End(NoPeers):
    """One process's end of the wires."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self.answers: dict[str, Answerer] = {}

    def on(self, topic: str, answer: Answerer) -> None:
        """See Peers."""
        self.answers[topic] = answer

    def tell(self, topic: str, body: bytes = b"") -> None:
        """See Peers."""
        assert len(body) < MESSAGE_BYTES + 200
        for each in self._wires.ends:
            if each is not self and not self._wires.is_lost:
                each.answers[topic](body)


async def test_a_message_that_is_lost_between_processes_is_made_up_for() -> None:
    """The process that holds the connection misses a link of the chain, then another process brings entries."""
    wires = Wires()
    bench = Bench(Broadcast(wires.end()))
    here, another, third = bench.hub, bench.another(Broadcast(wires.end())), bench.another(Broadcast(wires.end()))
    for each in (here, another, third):
        await each.start()
    wire = bench.join()
    await settled()
    bench.hub = another
    known = await bench.bring(30)
    await settled()
    wires.is_lost = True
    known += await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == known[:-1]
    wires.is_lost = False
    await another.ping()
    await settled()
    assert entries_in(said(wire.written)) == known
    wires.is_lost = True
    known += await bench.bring()
    wires.is_lost = False
    known += await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == known
    bench.hub = third
    known += await bench.bring(3)
    await settled()
    assert entries_in(said(wire.written)) == known
    for each in (here, another, third):
        await each.stop()


async def test_a_change_of_too_many_entries_names_none_of_them_to_anybody() -> None:
    """Nor to those who are connected to the process that made it."""
    wires = Wires()
    bench = Bench(Broadcast(wires.end()))
    here, another = bench.hub, bench.another(Broadcast(wires.end()))
    for each in (here, another):
        await each.start()
    wire = bench.join()
    await settled()
    ids = [format_id(NotificationId(n.to_bytes(16, "big"))) for n in range(NAMED_LIMIT + 1)]
    for bench.hub in (here, another):
        await bench.mark(Mark.READ, *ids)
        await settled()
        assert said(wire.written)[-1] == {"type": "marked", "mark": "read", "unread": 0, "unseen": 0}
        await bench.mark(Mark.READ, *ids[1:])
        await settled()
        assert len(said(wire.written)[-1]["ids"]) == NAMED_LIMIT
    for each in (here, another):
        await each.stop()


async def test_an_entry_that_cannot_be_shown_has_clients_list_the_feed(bench: Bench) -> None:
    def view(entry: Entry) -> str:
        if entry.place == 2:
            raise ValueError(entry)
        return named(entry)

    bench.hub._news._view = view
    wire = bench.join()
    await settled()
    await bench.bring(3)
    await settled()
    assert [each["type"] for each in said(wire.written)] == ["hello", "entry", "fetch", "entry"]


async def test_what_a_template_says_is_told_at_once_and_to_those_who_were_away(bench: Bench) -> None:
    async def say(notifications: Sequence[Notification]) -> Sequence[Notification]:
        hello = Content(title="Hello Ann")
        return [each if each.content.template is None else replace(each, content=hello) for each in notifications]

    bench.hub.say_by(say)
    bench.hub._news._view = lambda entry: entry.record.notification.content.title
    wire = bench.join()
    await settled()
    await bench.bring(content=Content(template=TemplateUse("hello", 1)))
    await bench.bring(content=Content(title="As it is"))
    await settled()
    assert entries_in(said(wire.written)) == ["Hello Ann", "As it is"]
    late = bench.join(since=cursors.of_place(0))
    await settled()
    assert entries_in(said(late.written)) == ["Hello Ann", "As it is"]


async def test_news_come_when_the_store_is_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waypost.entrypoints.live.news.AGAIN_S", 0)
    bench.feed.is_away = True
    wire = bench.join(since=cursors.of_place(0))
    await settled()
    bench.feed.is_away = False
    made = await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == made


async def test_other_devices_hear_of_marks_and_the_counts_that_are_true_then(bench: Bench) -> None:
    wire = bench.join()
    first, second = await bench.bring(2)
    await settled()
    await bench.mark(Mark.READ, first)
    await bench.mark(Mark.SEEN, second)
    await settled()
    assert said(wire.written)[-2:] == [
        {"type": "marked", "mark": "read", "ids": [first], "unread": 1, "unseen": 0},
        {"type": "marked", "mark": "seen", "ids": [second], "unread": 1, "unseen": 0},
    ]


async def test_who_was_behind_when_entries_were_marked_is_told_the_counts_once_it_has_caught_up(bench: Bench) -> None:
    """It knows of no entry of the mark, so it lists the feed."""
    wire = bench.join()
    (first,) = await bench.bring()
    await settled()
    wire.protocol.pause_writing()
    known = await bench.bring()
    await bench.mark(Mark.READ, first)
    await settled()
    wire.protocol.resume_writing()
    await settled()
    *_, entry, marked = said(wire.written)
    assert entries_in([entry]) == known
    assert marked == {"type": "marked", "mark": "read", "unread": 1, "unseen": 1}


async def test_marks_that_came_while_the_store_was_away_are_told_when_it_is_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.entrypoints.live.news.AGAIN_S", 0)
    wire = bench.join()
    (first,) = await bench.bring()
    await settled()
    bench.feed.is_away = True
    await bench.mark(Mark.READ, first)
    await settled()
    bench.feed.is_away = False
    await settled()
    assert said(wire.written)[-1] == {"type": "marked", "mark": "read", "unread": 0, "unseen": 0}


async def test_an_event_stream_says_the_same_with_ids_to_go_on_from(bench: Bench) -> None:
    wire = bench.join(EventStream)
    await settled()
    (made,) = await bench.bring()
    await settled()
    hello, entry, rest = wire.written.decode().split("\n\n")
    assert hello.startswith("id: ") and rest == ""
    head, data = entry.split("\ndata: ")
    cursor = head.removeprefix("id: ")
    assert msgspec.json.decode(data) == {"type": "entry", "cursor": cursor, "entry": made, "unread": 1, "unseen": 1}
