"""Sends to devices through APNs: few connections, many requests on each, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

from waypost.adapters.apns.credentials import ProviderTokens
from waypost.adapters.apns.errors import EXPIRED_JWT, outcome_of, reason_of
from waypost.adapters.apns.payload import PAYLOAD_LIMIT_BYTES, Rendering, render
from waypost.adapters.apns.settings import ApnsSettings
from waypost.adapters.push.origin import authority_of, origin_of, post_to
from waypost.adapters.push.payload import too_large
from waypost.adapters.push.signing import read_p256
from waypost.adapters.push.watch import CredentialWatch
from waypost.domain.delivery import Delivery
from waypost.domain.ids import AppId, CredentialId
from waypost.domain.notification import Channel, Kind, Notification
from waypost.domain.outcome import Refused
from waypost.domain.time import Instant
from waypost.http2 import Answer, Pool, PoolSettings, Result, encode_headers
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry

HOSTS = {"production": "https://api.push.apple.com", "sandbox": "https://api.sandbox.push.apple.com"}
TIMEOUT_S = 10.0
PING_AFTER_IDLE_S = 3600.0
"""Apple: a PING after an hour of idleness is welcome."""
USEFUL_STREAMS = 500
"""Deliveries in flight per connection beyond which more of them only wait."""


class _Shared:
    """What all devices of one notification have in common, ready for the wire."""

    __slots__ = ("body", "head", "notification", "refused")

    def __init__(self, notification: Notification, rendering: Rendering) -> None:
        self.notification = notification
        self.head = _block(rendering.headers)
        self.body = rendering.body
        self.refused = too_large(len(rendering.body), PAYLOAD_LIMIT_BYTES)


class ApnsSender:
    """The ``Sender`` of one APNs credential; silent and visible notifications have connections of their own."""

    def __init__(self, app: AppId, settings: ApnsSettings, *, clock: Clock, telemetry: Telemetry) -> None:
        self._section = f"apps.{app}.apns"
        self._settings = settings
        self._clock = clock
        self.credential: Final = CredentialId(f"{app}/{Channel.APNS}")
        self.capabilities: Final = Capabilities(
            channel=Channel.APNS,
            request_timeout_ms=int(TIMEOUT_S * 1000),
            max_in_flight=min(settings.connections * USEFUL_STREAMS, PoolSettings().max_queue),
            payload_limit_bytes=PAYLOAD_LIMIT_BYTES,
        )
        self._pools: dict[Kind, Pool] = {}
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: sum(pool.stats.connections for pool in self._pools.values())
        )
        self._loop: asyncio.AbstractEventLoop
        self._tokens: ProviderTokens
        self._pseudo_head = b""
        self._bearer = ("", b"")

    async def start(self) -> None:
        """Read the key and begin to connect; ConfigurationError names the setting that cannot be used."""
        self._loop = asyncio.get_running_loop()
        settings = self._settings
        key = read_p256(f"{self._section}.key_file", settings.key_file)
        self._tokens = ProviderTokens(key, settings.key_id, settings.team_id)
        origin = origin_of(self._section, settings.endpoint or HOSTS[settings.environment], settings.ca_file)
        self._pseudo_head = post_to(authority_of(origin))
        for kind, least, most in (
            (Kind.VISIBLE, 1, settings.connections),
            (Kind.SILENT, 0, settings.silent_connections),
        ):
            limits = PoolSettings(
                min_connections=least, max_connections=most, ping_after_idle_s=PING_AFTER_IDLE_S, low_water=0.2
            )
            self._pools[kind] = Pool(origin, limits, loop=self._loop, on_event=self._watch.saw)
        for pool in self._pools.values():
            await pool.start()

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        now = self._clock.now()
        deadline = self._loop.time() + TIMEOUT_S
        jwt = self._tokens.at(now)
        shared: _Shared | None = None
        for delivery in batch:
            if shared is None or shared.notification is not delivery.notification:
                shared = self._share(delivery.notification, now)
            refusal = shared.refused or _malformed(delivery.device.token)
            if refusal:
                self._loop.call_soon(report, delivery, refusal)
            else:
                self._request(delivery, shared, jwt, deadline, partial(self._ended, delivery, report, jwt, deadline))

    def render(self, delivery: Delivery) -> Rendered:
        """What ``send`` would put on the wire, without path and authorization."""
        rendering = render(delivery.notification, self._settings.topic, self._clock.now())
        refusal = too_large(len(rendering.body), PAYLOAD_LIMIT_BYTES) or _malformed(delivery.device.token)
        return Rendered(
            headers=dict(rendering.headers),
            body=rendering.body,
            size_bytes=len(rendering.body),
            limit_bytes=PAYLOAD_LIMIT_BYTES,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Not ok while Apple refuses the credential."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        await asyncio.gather(*(pool.drain(timeout_s) for pool in self._pools.values()))
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    def _share(self, notification: Notification, now: Instant) -> _Shared:
        return _Shared(notification, render(notification, self._settings.topic, now))

    def _request(self, delivery: Delivery, shared: _Shared, jwt: str, deadline: float, ended: partial[None]) -> None:
        path = encode_headers(((b":path", b"/3/device/" + delivery.device.token.encode()),))
        head = b"".join((self._pseudo_head, path, self._authorization(jwt), shared.head))
        self._pools[delivery.notification.kind].request(head, shared.body, deadline, ended)

    def _authorization(self, jwt: str) -> bytes:
        if self._bearer[0] is not jwt:
            self._bearer = (jwt, encode_headers([(b"authorization", f"bearer {jwt}".encode())]))
        return self._bearer[1]

    def _ended(self, delivery: Delivery, report: Report, jwt: str, deadline: float, result: Result) -> None:
        """One request has ended; a provider token that is too old is renewed once: then *jwt* is ""."""
        now = self._clock.now()
        if jwt and isinstance(result, Answer) and result.status == 403 and reason_of(result) == EXPIRED_JWT:
            again = partial(self._ended, delivery, report, "", deadline)
            self._request(
                delivery, self._share(delivery.notification, now), self._tokens.renew(jwt, now), deadline, again
            )
            return
        outcome = outcome_of(result, delivery, self._settings.dead_token_codes, now)
        self._watch.heed(outcome)
        report(delivery, outcome)


@lru_cache(maxsize=256)
def _block(headers: tuple[tuple[str, str], ...]) -> bytes:
    """Encoded once for all notifications of one kind and urgency that expire in the same second."""
    return encode_headers([(name.encode(), value.encode()) for name, value in headers])


def _malformed(token: str) -> Refused | None:
    """A token that could not stand in a path; its length is Apple's affair."""
    return None if token.isalnum() and token.isascii() else Refused("malformed_token", "the token is not hexadecimal")
