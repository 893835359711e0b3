"""Messages between workers, over real socket pairs."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterator

import pytest

from waypost.runtime.peers import SocketPeers, send_to

pytestmark = pytest.mark.asyncio


@pytest.fixture
def three() -> Iterator[list[SocketPeers]]:
    """Three workers, each with its inbox and the others' outboxes."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(3)]
    yield [
        SocketPeers(slot, pairs[slot][0], {other: pairs[other][1] for other in range(3) if other != slot})
        for slot in range(3)
    ]
    for end in itertools.chain.from_iterable(pairs):
        end.close()


async def test_told_is_heard_by_all_others_and_answers_come_back(three: list[SocketPeers]) -> None:
    """Both others hear a tell; an ask gathers what was answered, silence left out."""
    one, two, last = three
    heard = asyncio.Event()
    bodies: list[bytes] = []

    def hear(body: bytes) -> None:
        bodies.append(body)
        if len(bodies) == 2:
            heard.set()

    for peer in three:
        peer.start()
        peer.on("news", hear)
    two.on("who", lambda body: b"two:" + body)
    last.on("who", lambda body: None)
    one.tell("news", b"x")
    await heard.wait()
    assert bodies == [b"x", b"x"]
    assert await one.ask("who", b"?", timeout_s=5) == [b"two:?"]
    for peer in three:
        peer.stop()


async def test_a_frozen_peer_costs_an_asker_its_time_out_and_no_more(three: list[SocketPeers]) -> None:
    """Who does not read does not answer."""
    one, two, _ = three
    for peer in (one, two):
        peer.start()
    two.on("who", lambda body: b"two")
    assert await one.ask("who", b"", timeout_s=0.5) == [b"two"]
    for peer in (one, two):
        peer.stop()


async def test_what_was_sent_to_a_predecessor_is_dropped() -> None:
    """A worker that is started again does not read its predecessor's letters."""
    inbox, outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    send_to(outbox, "news", b"old")
    peer = SocketPeers(0, inbox, {})
    bodies: list[bytes] = []
    came = asyncio.Event()

    def hear(body: bytes) -> None:
        bodies.append(body)
        came.set()

    peer.on("news", hear)
    peer.start()
    send_to(outbox, "news", b"new")
    await came.wait()
    assert bodies == [b"new"]
    peer.stop()
    for end in (inbox, outbox):
        end.close()
