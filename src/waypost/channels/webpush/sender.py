"""A sender to web subscriptions: encrypted for each, over one pool for each push service, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from waypost.channels.push.encryption import PLAINTEXT_LIMIT_BYTES, SenderKeys
from waypost.channels.push.endpoints import Endpoint, EndpointGuard, take_apart
from waypost.channels.push.http1 import Fields
from waypost.channels.push.patience import request_timeout_ms, until
from waypost.channels.push.payload import named, told_alike, too_large
from waypost.channels.push.posting import Posting
from waypost.channels.push.services import Head, PushServices, head_of, trusts_of
from waypost.channels.push.vapid import read_vapid
from waypost.channels.push.watch import CredentialWatch
from waypost.channels.webpush.errors import of_one_service, outcome_of
from waypost.channels.webpush.families import Family, family_of, ttl_headers
from waypost.channels.webpush.payload import Rendering, render
from waypost.channels.webpush.settings import CHANNEL, WebPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Device
from waypost.domain.message import Message
from waypost.domain.outcome import Outcome, Refused
from waypost.domain.time import Instant
from waypost.http2 import Result
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry

MAX_IN_FLIGHT = 1000
REUSE_S = 3600.0
"""Seconds for which one sender key is used where the setting allows it."""


class _Shared:
    """The rendering that devices with the same message share (fulfils push.posting.Shared)."""

    __slots__ = ("_heads", "_rendering", "plaintext", "refused")

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering
        self._heads: dict[str, Head] = {}
        self.plaintext = rendering.plaintext
        self.refused = too_large(len(rendering.plaintext), PLAINTEXT_LIMIT_BYTES)

    def head(self, endpoint: Endpoint, *, encrypted: bool) -> Head:
        """See Shared."""
        head = self._heads.get(endpoint.origin)
        if head is None:
            head = self._heads[endpoint.origin] = _head(headers_for(family_of(endpoint), self._rendering))
        return head


@lru_cache(256)
def _head(fields: Fields) -> Head:
    """Encode headers that many messages have alike: urgency and time to live, seldom a topic of their own."""
    return head_of(fields)


def headers_for(family: Family, rendering: Rendering) -> tuple[tuple[str, str], ...]:
    """List every header for a push service beside path and authorization."""
    return rendering.headers + ttl_headers(family, rendering.ttl_s)


class WebPushSender:
    """The ``Sender`` of one VAPID key."""

    def __init__(
        self, credential: CredentialId, settings: WebPushSettings, *, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._settings = settings
        self._clock = clock
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(
            channel=CHANNEL,
            request_timeout_ms=request_timeout_ms(),
            max_in_flight=MAX_IN_FLIGHT,
            payload_limit_bytes=PLAINTEXT_LIMIT_BYTES,
            scope_of=_push_service,
            fails_apart=True,
        )
        self._section = credential.section
        self._guard = EndpointGuard(self._section, ())
        self._loop: asyncio.AbstractEventLoop
        self._posting: Posting | None = None
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: self._posting.connections() if self._posting is not None else 0
        )

    async def start(self) -> None:
        """Read the key; ConfigurationError names the setting that cannot be used. Connections come with deliveries."""
        self._loop = asyncio.get_running_loop()
        settings = self._settings
        vapid = read_vapid(self._section, settings.vapid_private_key_file, settings.subject)
        self._guard = EndpointGuard(self._section, settings.allow_endpoints)
        trusts = trusts_of(self._section, settings.ca_file)
        services = PushServices(settings, vapid, trusts, self._loop, self._watch.saw)
        keys = SenderKeys(reuse_s=REUSE_S if settings.reuse_sender_key else 0.0)
        self._posting = Posting(services, keys, self._address, _outcome, self._watch, self._clock)

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        assert self._posting is not None
        now = self._clock.now()
        patience = until(self._loop.time())
        for message, deliveries in told_alike(batch):
            shared = _Shared(self._rendering(message, now))
            for delivery in deliveries:
                self._posting.add(delivery, shared, patience, report)

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``send`` would encrypt and put on the wire, without path and authorization."""
        rendering = self._rendering(delivery.message, self._clock.now())
        address = self._address(delivery.device)
        refusal = too_large(len(rendering.plaintext), PLAINTEXT_LIMIT_BYTES)
        if refusal is None and isinstance(address, Refused):
            refusal = address
        family = Family.ANY if isinstance(address, Refused) else family_of(address)
        return Rendered(
            headers=dict(headers_for(family, rendering)),
            body=named(rendering.plaintext, delivery.id),
            size_bytes=len(rendering.plaintext),
            limit_bytes=PLAINTEXT_LIMIT_BYTES,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Report health: not ok while a push service refuses the identity."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        if self._posting is not None:
            await self._posting.stop(timeout_s)

    def _rendering(self, message: Message, now: Instant) -> Rendering:
        return render(message, now, declarative=self._settings.declarative, fit=self._settings.fit)

    def _address(self, device: Device) -> Endpoint | Refused:
        endpoint = self._guard.admit(device.token)
        if endpoint is None:
            return Refused("endpoint_not_allowed", "the endpoint is not one that the app's settings allow")
        if device.keys is None:
            return Refused("invalid_subscription", "the subscription has no keys")
        return endpoint


def _outcome(result: Result, now: Instant, named: bool) -> Outcome:
    """Say what an answer means; that of a push service that the operator did not name is of it alone."""
    outcome = outcome_of(result, now)
    return outcome if named else of_one_service(outcome)


def _push_service(delivery: Delivery) -> str:
    """Return the origin that a subscription hangs on; nothing is sent to what has none."""
    endpoint = take_apart(delivery.device.token)
    return "" if endpoint is None else endpoint.origin
