"""Handing deliveries to a sender and waiting for what it reports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from tests.unit.adapters.deliveries import delivery, notification
from waypost.domain.audience import Audience
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, delivery_of
from waypost.domain.device import Platform, SubscriptionKeys
from waypost.domain.ids import NotificationId, next_ids
from waypost.domain.message import message_of
from waypost.domain.notification import Notification
from waypost.domain.outcome import Outcome
from waypost.domain.time import Instant
from waypost.lab import Lab
from waypost.lab.faults import FaultRule, parse_rules
from waypost.lab.records import RequestRecord
from waypost.ports.sender import Sender


class SystemClock:
    """The machine's own time."""

    def now(self) -> Instant:
        """See Clock."""
        return Instant(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()


def fresh(content: Content | None = None, *, kind: Kind = Kind.VISIBLE, **fields: Any) -> Notification:
    """A notification made now, with an id of its own."""
    now = SystemClock().now()
    return notification(content, kind=kind, created_at=now, notification_id=fresh_id(now), **fields)


def fresh_id(now: Instant) -> NotificationId:
    """An id of its own."""
    global _floor
    (made,), _floor = next_ids(now, 1, bytes(10), _floor)
    return made


_floor = 0


def to_ios(lab: Lab, what: Notification | None = None, token: str | None = None) -> Delivery:
    """To an iOS device of the lab."""
    (made,) = lab.tokens.make("ios", 1, topic="com.example.demo", environment="production")
    return delivery(Platform("ios"), token or made, what or fresh())


def to_android(lab: Lab, what: Notification | None = None, token: str | None = None) -> Delivery:
    """To an Android device of the lab."""
    (made,) = lab.tokens.make("android", 1, topic=None, environment=None)
    return delivery(Platform("android"), token or made, what or fresh())


def to_web(
    lab: Lab, what: Notification | None = None, service: str = "rfc", vapid_key: bytes | None = None
) -> Delivery:
    """To a browser of the lab."""
    subscription = lab.webpush.subscribe(service=service, vapid_key=vapid_key)
    keys = SubscriptionKeys(p256dh=subscription.public_key, auth=subscription.auth)
    return delivery(Platform("web"), lab.webpush.endpoint(subscription), what or fresh(), keys=keys)


def to_all(to: Audience, **content: Any) -> Delivery:
    """To all who listen at a provider."""
    what = fresh(Content(to=to, **({"title": "Hello"} | content)))
    credential = CredentialId(what.app, to.channel)
    return delivery_of(what, 0, credential, to, message_of(what))


async def outcomes(sender: Sender, deliveries: Sequence[Delivery]) -> list[Outcome]:
    """Send, and what each came to, in the order of *deliveries*; fails where one is reported twice or too early."""
    returned = False
    reported: dict[int, Outcome] = {}
    done = asyncio.Event()

    def report(one: Delivery, outcome: Outcome) -> None:
        assert returned, "reported before send returned"
        assert id(one) not in reported, "reported twice"
        reported[id(one)] = outcome
        if len(reported) == len(deliveries):
            done.set()

    sender.send(deliveries, report)
    returned = True
    async with asyncio.timeout(60):
        await done.wait()
    return [reported[id(one)] for one in deliveries]


async def outcome(sender: Sender, one: Delivery) -> Outcome:
    """What one delivery came to."""
    (got,) = await outcomes(sender, [one])
    return got


def script(*rules: dict[str, Any]) -> list[FaultRule]:
    """Fault rules as a YAML file would have them."""
    return parse_rules(list(rules))


def accepted(lab: Lab, gateway: str) -> list[RequestRecord]:
    """What the lab took, oldest first."""
    return [record for record in lab.records.since(-1) if record.gateway == gateway and record.accepted]


def payload_of(lab: Lab, record: RequestRecord) -> Any:
    """The JSON that arrived, decrypted where it was encrypted."""
    content = lab.records.content(record.seq)
    assert content is not None
    return msgspec.json.decode(content.body if content.plaintext is None else content.plaintext)


def headers_of(lab: Lab, record: RequestRecord) -> dict[str, str]:
    """The headers that arrived."""
    content = lab.records.content(record.seq)
    assert content is not None
    return content.headers
