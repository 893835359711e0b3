"""The lab as Firefox's push service: what it answers, keeps, sends again and forgets."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.adapters.lab.senders import Senders, base64url, point
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio
BODY = b"\x00" * 120
"""Bytes that the lab cannot read, as it cannot read what is for a real browser."""


class Browser:
    """A browser's end of the protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def ask(self, **frame: Any) -> Any:
        """Say one thing and read what comes next."""
        await self.socket.send_json(frame)
        return await self.hears()

    async def hears(self) -> Any:
        """Read one frame; None where the other side closed."""
        message = await self.socket.receive(timeout=30)
        return json.loads(message.data) if message.type is aiohttp.WSMsgType.TEXT else None

    async def registers(self, key: str | None = None) -> tuple[str, dict[str, Any]]:
        """Make a subscription: its channel, and what a sender needs."""
        channel = str(uuid.uuid4())
        answer = await self.ask(messageType="register", channelID=channel, key=key)
        assert (answer["status"], answer["channelID"]) == (200, channel)
        return channel, {"endpoint": answer["pushEndpoint"]}


@contextlib.asynccontextmanager
async def connected(senders: Senders) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession() as session, session.ws_connect(senders.urls.browsers) as socket:
        yield Browser(socket)


@contextlib.asynccontextmanager
async def greeted(senders: Senders, uaid: str | None = None) -> AsyncIterator[tuple[Browser, str]]:
    """A browser that has said hello, and its name."""
    async with connected(senders) as browser:
        answer = await browser.ask(messageType="hello", use_webpush=True, broadcasts={}, uaid=uaid)
        assert (answer["status"], answer["use_webpush"]) == (200, True)
        yield browser, answer["uaid"]


async def shown(senders: Senders, uaid: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = (await senders.admin("GET", "/browsers"))["browsers"]
    return {each["uaid"]: each for each in found}[uaid]


async def test_a_message_reaches_the_browser_as_it_was_sent_and_is_acknowledged(senders: Senders) -> None:
    async with greeted(senders) as (browser, uaid):
        channel, subscription = await browser.registers(base64url(point(senders.vapid_key)) + "=")
        assert (await senders.webpush(subscription, {"topic": "t"}, body=BODY)).status_code == 201
        message = await browser.hears()
        version = message.pop("version")
        assert message == {
            "messageType": "notification",
            "channelID": channel,
            "ttl": 60,
            "headers": {"encoding": "aes128gcm"},
            "data": base64url(BODY),
        }
        update = {"channelID": channel, "version": version, "code": 100}
        await browser.socket.send_json({"messageType": "ack", "updates": [update]})
        assert await browser.ask() == {}, "a ping, which is answered behind the acknowledgement"
        found = await shown(senders, uaid)
        assert (found["connected"], found["waiting"], found["acknowledged"]) == (True, 0, [100])


async def test_what_is_not_acknowledged_comes_again_after_the_next_hello(senders: Senders) -> None:
    """In order; what came while it was away, too, but for what has no time to live or was replaced."""
    async with greeted(senders) as (browser, uaid):
        channel, subscription = await browser.registers()
        await senders.webpush(subscription, body=BODY)
        first = await browser.hears()
    for topic, ttl in (("a", "60"), ("a", "60"), ("b", "0")):
        assert (await senders.webpush(subscription, {"topic": topic, "ttl": ttl}, body=BODY)).status_code == 201
    assert (await shown(senders, uaid))["waiting"] == 2
    async with greeted(senders, uaid) as (browser, again):
        assert again == uaid
        assert await browser.hears() == first
        second = await browser.hears()
        assert (second["channelID"], second["version"] != first["version"]) == (channel, True)
        assert await browser.ask() == {}


async def test_a_subscription_is_the_given_senders_alone_and_ends_with_its_unregistering(senders: Senders) -> None:
    async with greeted(senders) as (browser, uaid):
        other = base64url(b"\x04" + b"\x01" * 64)
        channel, subscription = await browser.registers(other)
        assert (await senders.webpush(subscription, body=BODY)).json()["errno"] == 109
        answer = await browser.ask(messageType="unregister", channelID=channel)
        assert answer == {"messageType": "unregister", "channelID": channel, "status": 200}
        assert (await senders.webpush(subscription, body=BODY)).status_code == 410
        assert (await shown(senders, uaid))["subscriptions"] == []
        assert (await browser.ask(messageType="register", channelID="no uuid"))["status"] == 409


@pytest.mark.parametrize("said", ["not JSON", '{"messageType":"dance"}', '{"messageType":"register","channelID":"x"}'])
async def test_who_does_not_keep_to_the_protocol_is_disconnected(senders: Senders, said: str) -> None:
    """Neither is anybody heard who has not said hello."""
    async with connected(senders) as browser:
        await browser.socket.send_str(said)
        assert await browser.hears() is None


async def test_a_browser_keeps_its_name_and_subscriptions_over_a_restart(senders: Senders, lab: Lab) -> None:
    async with greeted(senders) as (browser, uaid):
        _, subscription = await browser.registers()
    again = Lab(lab.settings)
    await again.start()
    try:
        assert [each["uaid"] for each in again.browsers.shown()] == [uaid]
        assert again.webpush.subscriptions.get(subscription["endpoint"].rpartition("/")[2]) is not None
    finally:
        await again.stop()


async def test_a_browser_that_connects_twice_is_spoken_to_where_it_came_last(senders: Senders) -> None:
    async with greeted(senders) as (browser, uaid), greeted(senders, uaid) as (anew, _):
        assert await browser.hears() is None
        _, subscription = await anew.registers()
        await senders.webpush(subscription, body=BODY)
        assert (await anew.hears())["messageType"] == "notification"
