"""Sends to devices through APNs: few connections, many requests on each, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache, partial

from waypost.adapters.apns.credentials import ProviderTokens, read_key
from waypost.adapters.apns.errors import EXPIRED_JWT, outcome_of, reason_of
from waypost.adapters.apns.payload import PAYLOAD_LIMIT_BYTES, Rendering, render
from waypost.adapters.apns.settings import ApnsSettings
from waypost.domain.delivery import Delivery
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, CredentialId
from waypost.domain.notification import Channel, Kind, Notification
from waypost.domain.outcome import Denied, Outcome, Refused, Taken
from waypost.domain.time import Instant
from waypost.http2 import (
    Answer,
    ConnectFailed,
    ConnectionClosed,
    ConnectionOpened,
    GoAwayReceived,
    Origin,
    Pool,
    PoolEvent,
    PoolSettings,
    Result,
    encode_headers,
)
from waypost.http2.endpoint import authority_of, origin_of, trust
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric
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
        self.refused = _too_large(rendering)


class ApnsSender:
    """The ``Sender`` of one APNs credential; silent and visible notifications have connections of their own."""

    def __init__(self, app: AppId, settings: ApnsSettings, *, clock: Clock, telemetry: Telemetry) -> None:
        self._app = app
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._credential = CredentialId(f"{app}/{Channel.APNS}")
        self._capabilities = Capabilities(
            channel=Channel.APNS,
            request_timeout_ms=int(TIMEOUT_S * 1000),
            max_in_flight=min(settings.connections * USEFUL_STREAMS, PoolSettings().max_queue),
            payload_limit_bytes=PAYLOAD_LIMIT_BYTES,
        )
        self._pools: dict[Kind, Pool] = {}
        self._loop: asyncio.AbstractEventLoop
        self._tokens: ProviderTokens
        self._pseudo_head = b""
        self._bearer = ("", b"")
        self._denied: str | None = None

    @property
    def credential(self) -> CredentialId:
        """``<app>/apns``."""
        return self._credential

    @property
    def capabilities(self) -> Capabilities:
        """Constant for the life of the sender."""
        return self._capabilities

    async def start(self) -> None:
        """Read the key and begin to connect; ConfigurationError names the setting that cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._tokens = ProviderTokens(
            read_key(self._app, self._settings), self._settings.key_id, self._settings.team_id
        )
        origin = _origin(self._app, self._settings)
        self._pseudo_head = encode_headers(
            [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", authority_of(origin))]
        )
        for kind, least, most in (
            (Kind.VISIBLE, 1, self._settings.connections),
            (Kind.SILENT, 0, self._settings.silent_connections),
        ):
            limits = PoolSettings(
                min_connections=least, max_connections=most, ping_after_idle_s=PING_AFTER_IDLE_S, low_water=0.2
            )
            self._pools[kind] = Pool(origin, limits, loop=self._loop, on_event=self._saw)
        for pool in self._pools.values():
            await pool.start()

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        now = self._clock.now()
        deadline = self._loop.time() + TIMEOUT_S
        jwt = self._tokens.at(now)
        shared: _Shared | None = None
        refused: list[tuple[Delivery, Outcome]] = []
        for delivery in batch:
            if shared is None or shared.notification is not delivery.notification:
                shared = self._share(delivery.notification, now)
            refusal = shared.refused or _malformed(delivery.device.token)
            if refusal:
                refused.append((delivery, refusal))
            else:
                self._request(delivery, shared, jwt, deadline, partial(self._ended, delivery, report, jwt, deadline))
        if refused:
            self._loop.call_soon(_report_all, refused, report)

    def render(self, delivery: Delivery) -> Rendered:
        """What ``send`` would put on the wire, without path and authorization."""
        rendering = render(delivery.notification, self._settings.topic, self._clock.now())
        refusal = _too_large(rendering) or _malformed(delivery.device.token)
        return Rendered(
            headers=dict(rendering.headers),
            body=rendering.body,
            size_bytes=len(rendering.body),
            limit_bytes=PAYLOAD_LIMIT_BYTES,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Not ok while Apple refuses the credential."""
        return Health(ok=self._denied is None, why=self._denied)

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
        if isinstance(outcome, Denied):
            self._deny(outcome)
        elif isinstance(outcome, Taken):
            self._denied = None
        report(delivery, outcome)

    def _deny(self, outcome: Denied) -> None:
        why = f"{outcome.code}: {outcome.why}"
        if why != self._denied:
            self._telemetry.event(
                Event.CREDENTIAL_DENIED, credential=self._credential, code=outcome.code, why=outcome.why
            )
        self._denied = why

    def _saw(self, event: PoolEvent) -> None:
        match event:
            case ConnectionOpened():
                self._telemetry.event(Event.CONNECTION_OPENED, credential=self._credential)
            case ConnectionClosed(reason):
                self._telemetry.event(Event.CONNECTION_CLOSED, credential=self._credential, why=reason)
            case ConnectFailed(reason):
                self._telemetry.event(Event.CONNECTION_FAILED, credential=self._credential, why=reason)
            case GoAwayReceived(code):
                self._telemetry.event(Event.CONNECTION_GOAWAY, credential=self._credential, code=code)
        connections = sum(pool.stats.connections for pool in self._pools.values())
        self._telemetry.gauge(Metric.CONNECTIONS, connections, credential=self._credential)


@lru_cache(maxsize=256)
def _block(headers: tuple[tuple[str, str], ...]) -> bytes:
    """Encoded once for all notifications of one kind and urgency that expire in the same second."""
    return encode_headers([(name.encode(), value.encode()) for name, value in headers])


def _origin(app: AppId, settings: ApnsSettings) -> Origin:
    try:
        tls = trust(settings.ca_file)
    except OSError as error:
        raise ConfigurationError(f"apps.{app}.apns.ca_file", f"cannot be used: {error.strerror or error}") from None
    try:
        return origin_of(settings.endpoint or HOSTS[settings.environment], tls)
    except ValueError as error:
        raise ConfigurationError(f"apps.{app}.apns.endpoint", str(error)) from None


def _too_large(rendering: Rendering) -> Refused | None:
    size = len(rendering.body)
    if size <= PAYLOAD_LIMIT_BYTES:
        return None
    return Refused("payload_too_large", f"{size} bytes, limit {PAYLOAD_LIMIT_BYTES}")


def _malformed(token: str) -> Refused | None:
    """A token that could not stand in a path; its length is Apple's affair."""
    return None if token.isalnum() and token.isascii() else Refused("malformed_token", "the token is not hexadecimal")


def _report_all(outcomes: list[tuple[Delivery, Outcome]], report: Report) -> None:
    for delivery, outcome in outcomes:
        report(delivery, outcome)
