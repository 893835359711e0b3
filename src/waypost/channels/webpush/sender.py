"""A sender to web subscriptions: encrypted for each, over one pool for each push service, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple

from waypost.channels.push.addresses import AllowedRange
from waypost.channels.push.encryption import PLAINTEXT_LIMIT_BYTES, InvalidKeys, SenderKeys, encrypt, new_salt
from waypost.channels.push.endpoints import Endpoint, EndpointGuard, take_apart
from waypost.channels.push.http1 import Fields
from waypost.channels.push.patience import Until, request_timeout_ms, until
from waypost.channels.push.payload import named, told_alike, too_large
from waypost.channels.push.services import Head, Post, PushServices, head_of, trusts_of
from waypost.channels.push.turns import Turns
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
from waypost.domain.outcome import Refused, Unreachable
from waypost.domain.time import SECOND_MS, Instant
from waypost.http2 import Result
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry

MAX_IN_FLIGHT = 1000
FULL_WAIT_MS = 5 * SECOND_MS
REUSE_S = 3600.0
"""Seconds for which one sender key is used where the setting allows it."""


class _Shared:
    """The rendering that devices with the same message share, ready for encryption and the wire."""

    __slots__ = ("_heads", "_rendering", "plaintext", "refused")

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering
        self._heads: dict[str, Head] = {}
        self.plaintext = rendering.plaintext
        self.refused = too_large(len(rendering.plaintext), PLAINTEXT_LIMIT_BYTES)

    def head(self, service: Endpoint) -> Head:
        """Return the headers that all devices at one push service share."""
        head = self._heads.get(service.origin)
        if head is None:
            head = self._heads[service.origin] = _head(headers_for(family_of(service), self._rendering))
        return head


@lru_cache(256)
def _head(fields: Fields) -> Head:
    """Encode headers that many messages have alike: urgency and time to live, seldom a topic of their own."""
    return head_of(fields)


def headers_for(family: Family, rendering: Rendering) -> tuple[tuple[str, str], ...]:
    """List every header for a push service beside path and authorization."""
    return rendering.headers + ttl_headers(family, rendering.ttl_s)


class _Waiting(NamedTuple):
    """A delivery that waits for its turn to be encrypted."""

    delivery: Delivery
    shared: _Shared
    until: Until
    report: Report


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
        self._sender_keys = SenderKeys(reuse_s=REUSE_S if settings.reuse_sender_key else 0.0)
        self._loop: asyncio.AbstractEventLoop
        self._services: PushServices | None = None
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: self._services.connections() if self._services is not None else 0
        )
        self._turns = Turns(self._take)

    async def start(self) -> None:
        """Read the key; ConfigurationError names the setting that cannot be used. Connections come with deliveries."""
        self._loop = asyncio.get_running_loop()
        settings = self._settings
        vapid = read_vapid(self._section, settings.vapid_private_key_file, settings.subject)
        self._guard = EndpointGuard(self._section, settings.allow_endpoints)
        trusts = trusts_of(self._section, settings.ca_file)
        self._services = PushServices(settings, vapid, trusts, self._loop, self._watch.saw)

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        now = self._clock.now()
        patience = until(self._loop.time())
        for message, deliveries in told_alike(batch):
            shared = _Shared(self._rendering(message, now))
            for delivery in deliveries:
                self._turns.add(_Waiting(delivery, shared, patience, report))

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
        self._turns.finish()
        if self._services is not None:
            await self._services.stop(timeout_s)

    def _take(self, some: Sequence[_Waiting]) -> None:
        """Send what has its turn, what goes to one push service together, or say why it cannot be sent."""
        parts: dict[tuple[str, AllowedRange, bool, Until], list[tuple[_Waiting, Endpoint]]] = {}
        for one in some:
            endpoint = one.shared.refused or self._address(one.delivery.device)
            if isinstance(endpoint, Refused):
                one.report(one.delivery, endpoint)
            else:
                key = endpoint.origin, endpoint.reach, endpoint.named, one.until
                parts.setdefault(key, []).append((one, endpoint))
        now = self._clock.now()
        for part in parts.values():
            self._post(part, now)

    def _post(self, part: Sequence[tuple[_Waiting, Endpoint]], now: Instant) -> None:
        """Put messages to one push service on the wire, handed over at one time."""
        assert self._services is not None
        first, endpoint = part[0]
        service = self._services.at(endpoint)
        if service is None:
            full = Unreachable("push_services_full", "too many push services are in use", FULL_WAIT_MS)
            for one, _ in part:
                one.report(one.delivery, full)
            return
        posts: list[Post] = []
        for one, its in part:
            body = self._encrypted(one)
            if isinstance(body, Refused):
                one.report(one.delivery, body)
            else:
                posts.append((one.shared.head(its), body, its.path, one))
        service.post_all(posts, now, first.until, partial(self._ended, endpoint.named))

    def _encrypted(self, one: _Waiting) -> bytes | Refused:
        keys = one.delivery.device.keys
        assert keys is not None
        plaintext = named(one.shared.plaintext, one.delivery.id)
        try:
            return encrypt(plaintext, keys, self._sender_keys.next(self._loop.time()), new_salt())
        except InvalidKeys as error:
            return Refused("invalid_subscription", str(error))

    def _rendering(self, message: Message, now: Instant) -> Rendering:
        return render(message, now, declarative=self._settings.declarative, fit=self._settings.fit)

    def _address(self, device: Device) -> Endpoint | Refused:
        endpoint = self._guard.admit(device.token)
        if endpoint is None:
            return Refused("endpoint_not_allowed", "the endpoint is not one that the app's settings allow")
        if device.keys is None:
            return Refused("invalid_subscription", "the subscription has no keys")
        return endpoint

    def _ended(self, named: bool, ended: list[tuple[_Waiting, Result]]) -> None:
        """Handle the ends of requests to one push service."""
        now = self._clock.now()
        for one, result in ended:
            try:
                outcome = outcome_of(result, now)
                if not named:
                    outcome = of_one_service(outcome)
                self._watch.heed(outcome)
                one.report(one.delivery, outcome)
            except Exception as error:  # noqa: BLE001 - a bug in one outcome must not lose those behind it
                self._loop.call_exception_handler({"message": "an outcome was not reported", "exception": error})


def _push_service(delivery: Delivery) -> str:
    """Return the origin that a subscription hangs on; nothing is sent to what has none."""
    endpoint = take_apart(delivery.device.token)
    return "" if endpoint is None else endpoint.origin
