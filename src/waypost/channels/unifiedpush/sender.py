"""A sender to UnifiedPush registrations: encrypted for each, one pool for each push server, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from waypost.channels.push.encryption import SenderKeys
from waypost.channels.push.endpoints import Endpoint, EndpointGuard, take_apart
from waypost.channels.push.message import ENCRYPTED
from waypost.channels.push.patience import request_timeout_ms, until
from waypost.channels.push.payload import named, told_alike, too_large
from waypost.channels.push.posting import Posting
from waypost.channels.push.services import Head, PushServices, head_of, trusts_of
from waypost.channels.push.vapid import Vapid, read_vapid
from waypost.channels.push.watch import CredentialWatch
from waypost.channels.unifiedpush.errors import outcome_of
from waypost.channels.unifiedpush.payload import LIMIT_BYTES, Rendering, render
from waypost.channels.unifiedpush.settings import CHANNEL, UnifiedPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Device
from waypost.domain.errors import ConfigurationError
from waypost.domain.outcome import Outcome, Refused
from waypost.domain.time import Instant
from waypost.http2 import Result
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry

MAX_IN_FLIGHT = 1000
OPEN: Final = (("content-type", "application/octet-stream"),)
"""The headers of a message that is not encrypted."""


class _Shared:
    """The rendering that devices with the same message share (fulfils push.posting.Shared)."""

    def __init__(self, rendering: Rendering) -> None:
        self.plaintext = rendering.plaintext
        self.refused = too_large(len(rendering.plaintext), LIMIT_BYTES)
        self._headers = rendering.headers
        self._heads: dict[bool, Head] = {}

    def head(self, endpoint: Endpoint, *, encrypted: bool) -> Head:
        """See Shared."""
        if encrypted not in self._heads:
            self._heads[encrypted] = head_of((*(ENCRYPTED if encrypted else OPEN), *self._headers))
        return self._heads[encrypted]


class UnifiedPushSender:
    """The ``Sender`` of one app to the push servers that its users chose."""

    def __init__(
        self, credential: CredentialId, settings: UnifiedPushSettings, *, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._settings = settings
        self._section = credential.section
        self._clock = clock
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(
            channel=CHANNEL,
            request_timeout_ms=request_timeout_ms(),
            max_in_flight=MAX_IN_FLIGHT,
            payload_limit_bytes=LIMIT_BYTES,
            scope_of=_push_server,
            fails_apart=True,
        )
        self._guard = EndpointGuard(self._section, ())
        self._loop: asyncio.AbstractEventLoop
        self._posting: Posting | None = None
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: self._posting.connections() if self._posting is not None else 0
        )

    async def start(self) -> None:
        """Read the key; ConfigurationError names the setting that cannot be used. Connections come with deliveries."""
        self._loop = asyncio.get_running_loop()
        self._guard = EndpointGuard(self._section, self._settings.allow_endpoints)
        trusts = trusts_of(self._section, self._settings.ca_file)
        services = PushServices(self._settings, self._identity(), trusts, self._loop, self._watch.saw)
        keys = SenderKeys(reuse_s=0.0)
        self._posting = Posting(services, keys, self._address, _outcome, self._watch, self._clock)

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        assert self._posting is not None
        now = self._clock.now()
        patience = until(self._loop.time())
        for message, deliveries in told_alike(batch):
            shared = _Shared(render(message, now, self._settings.fit))
            for delivery in deliveries:
                self._posting.add(delivery, shared, patience, report)

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``send`` would encrypt and put on the wire, without path and authorization."""
        rendering = render(delivery.message, self._clock.now(), self._settings.fit)
        address = self._address(delivery.device)
        refusal = too_large(len(rendering.plaintext), LIMIT_BYTES)
        if refusal is None and isinstance(address, Refused):
            refusal = address
        return Rendered(
            headers=dict((*(OPEN if delivery.device.keys is None else ENCRYPTED), *rendering.headers)),
            body=named(rendering.plaintext, delivery.id),
            size_bytes=len(rendering.plaintext),
            limit_bytes=LIMIT_BYTES,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Report health, which is always ok: no push server speaks of the others."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        if self._posting is not None:
            await self._posting.stop(timeout_s)

    def _identity(self) -> Vapid | None:
        settings = self._settings
        if settings.vapid_private_key_file is None and settings.subject is None:
            return None
        if settings.vapid_private_key_file is None or settings.subject is None:
            missing = "subject" if settings.subject is None else "vapid_private_key_file"
            raise ConfigurationError(f"{self._section}.{missing}", "a key and its subject belong together")
        return read_vapid(self._section, settings.vapid_private_key_file, settings.subject)

    def _address(self, device: Device) -> Endpoint | Refused:
        endpoint = self._guard.admit(device.token)
        if endpoint is None:
            return Refused("endpoint_not_allowed", "the endpoint is not one that the app's settings allow")
        if device.keys is None and not self._settings.plaintext:
            return Refused("invalid_subscription", "the registration has no keys, and nothing is sent unencrypted")
        return endpoint


def _outcome(result: Result, now: Instant, named: bool) -> Outcome:
    """Say what an answer means."""
    return outcome_of(result, now)


def _push_server(delivery: Delivery) -> str:
    """Return the origin that a registration hangs on; nothing is sent to what has none."""
    endpoint = take_apart(delivery.device.token)
    return "" if endpoint is None else endpoint.origin
