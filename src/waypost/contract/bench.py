"""A bench: a sender at its gateway in a lab of its own, deliveries to send, and what each came to."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from waypost.bootstrap.registry import installed
from waypost.bootstrap.senders import sender_of
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, delivery_of
from waypost.domain.device import Device, Platform, SubscriptionKeys
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId, next_ids
from waypost.domain.message import message_of
from waypost.domain.notification import Notification, lane_of
from waypost.domain.outcome import Outcome
from waypost.domain.time import HOUR_MS, later
from waypost.lab.counterparts import Account, Counterpart, Made, counterparts
from waypost.lab.faults import parse_rules
from waypost.lab.lab import Lab
from waypost.lab.records import RequestRecord
from waypost.lab.settings import LabSettings
from waypost.ports.plugin import Means, SenderPlugin
from waypost.ports.sender import Sender
from waypost.runtime.clock import SystemClock
from waypost.telemetry import Silent

APP = AppId("demo")
PATIENCE_S = 60.0
"""Seconds for outcomes, which come within the sender's own time."""


class SenderBench:
    """A started sender and the lab that it sends to."""

    def __init__(self, lab: Lab, gateway: str, platform: Platform, sender: Sender) -> None:
        self.lab, self.gateway, self.sender = lab, gateway, sender
        self._platform = platform
        self._floor = 0
        self._tokens: dict[NotificationId, str] = {}

    def make(self) -> Made:
        """Make a device at the gateway."""
        return self.lab.further[self.gateway].make({})

    def delivery(self, content: Content | None = None, to: Made | None = None, *, ttl_ms: int = HOUR_MS) -> Delivery:
        """Make the first attempt to send a notification of its own to a new device, or to *to*."""
        made, now = to or self.make(), SystemClock().now()
        (own,), self._floor = next_ids(now, 1, os.urandom(10), self._floor)
        what = Notification(
            id=own,
            app=APP,
            caller=CallerId("contract"),
            user_id=UserId("u1"),
            content=content or Content(title="Hello", body="World"),
            created_at=now,
            expires_at=later(now, ttl_ms),
            ttl_ms=ttl_ms,
            lane=lane_of(Kind.VISIBLE, Urgency.NORMAL),
        )
        device = Device(
            app=APP,
            user_id=what.user_id,
            device_id=DeviceId("d1"),
            platform=self._platform,
            token=str(made.shown["endpoint"]),
            registered_at=now,
            last_seen_at=now,
            token_updated_at=now,
            keys=_keys_of(made.shown.get("keys")),
        )
        self._tokens[own] = made.token
        return delivery_of(what, 0, self.sender.credential, device, message_of(what))

    async def outcomes(self, deliveries: Sequence[Delivery]) -> list[Outcome]:
        """Send, and return what each came to; fails where one is reported twice, or before ``send`` returned."""
        returned, done = False, asyncio.Event()
        reported: dict[int, Outcome] = {}

        def report(one: Delivery, outcome: Outcome) -> None:
            assert returned, "reported before send returned"
            assert id(one) not in reported, "reported twice"
            reported[id(one)] = outcome
            if len(reported) == len(deliveries):
                done.set()

        self.sender.send(deliveries, report)
        returned = True
        async with asyncio.timeout(PATIENCE_S):
            await done.wait()
        return [reported[id(one)] for one in deliveries]

    async def outcome(self, one: Delivery | None = None) -> Outcome:
        """Send one, and return what it came to."""
        (got,) = await self.outcomes([one or self.delivery()])
        return got

    async def script(self, *rules: dict[str, Any]) -> None:
        """Put fault rules in force at the gateway, as a file of them says it: ``{"do": …}``, ``match`` where needed."""
        await self.lab.script(parse_rules([{"where": self.gateway, **rule} for rule in rules]))

    def accepted(self) -> list[RequestRecord]:
        """List what the gateway took, oldest first."""
        return [each for each in self.lab.records.since(-1) if each.gateway == self.gateway and each.accepted]

    def copies(self, one: Delivery) -> int:
        """Count how often the gateway took a delivery, which was the only one to its device."""
        return sum(record.token == self._tokens[one.id] for record in self.accepted())


@asynccontextmanager
async def sender_bench(channel: str, directory: Path, settings: Mapping[str, Any] = {}) -> AsyncIterator[SenderBench]:
    """Open a lab in *directory*, an absolute path, and there the sender of *channel*.

    *settings* are added to those of its account. Raises LookupError where no plug-in or no counterpart is installed.
    """
    plugin, (counterpart, account) = plugin_of(channel), counterpart_of(channel)
    lab = Lab(LabSettings(directory=directory, apns_port=0, fcm_port=0, webpush_port=0, oauth_port=0, admin_port=0))
    await lab.start()
    try:
        section = {**account.settings(directory, lab.urls.further[counterpart.name]), **settings}
        means = Means(SystemClock(), Silent(), ahead=False)
        sender = sender_of(means, CredentialId.of(APP, channel), plugin, msgspec.convert(section, plugin.settings))
        await sender.start()
        try:
            yield SenderBench(lab, counterpart.name, Platform(account.platform), sender)
        finally:
            await sender.stop(0)
    finally:
        await lab.stop()


def counterpart_of(channel: str) -> tuple[Counterpart, Account]:
    """Find the installed counterpart with an account for *channel*. Raises LookupError where none has one."""
    for each in counterparts():
        if each.account is not None and each.account.channel == channel:
            return each, each.account
    raise LookupError(f"no counterpart under the entry points waypost.lab has an account for {channel}")


def plugin_of(channel: str) -> SenderPlugin:
    """Find the installed plug-in of *channel*. Raises LookupError where there is none."""
    found = {plugin.channel: plugin for plugin in installed()}.get(Channel(channel))
    if found is None:
        raise LookupError(f"no plug-in under the entry points waypost.senders is {channel}")
    return found


def _keys_of(said: Any) -> SubscriptionKeys | None:
    if not isinstance(said, dict):
        return None
    p256dh, auth = (base64.urlsafe_b64decode(said[name] + "==") for name in ("p256dh", "auth"))
    return SubscriptionKeys(p256dh, auth)
