"""Sends to devices through FCM: one request per message, 100 at once on each connection, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from waypost.adapters.fcm.credentials import ServiceAccount, read_service_account
from waypost.adapters.fcm.errors import asks_for_a_new_access_token, outcome_of
from waypost.adapters.fcm.oauth import AccessTokens
from waypost.adapters.fcm.payload import PAYLOAD_LIMIT_BYTES, Rendering, render
from waypost.adapters.fcm.settings import FcmSettings
from waypost.domain.delivery import Delivery
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, CredentialId
from waypost.domain.notification import Channel
from waypost.domain.outcome import Denied, Outcome, Refused, Taken
from waypost.http2 import (
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

GOOGLE = "https://fcm.googleapis.com"
TIMEOUT_S = 10.0
STREAMS = 100
IDLE_S = 230.0
"""FCM ends a connection after 4 minutes without a request."""
MAX_AGE_S = 59 * 60.0
"""FCM ends a connection after an hour."""


class FcmSender:
    """The ``Sender`` of one Firebase project."""

    def __init__(self, app: AppId, settings: FcmSettings, *, clock: Clock, telemetry: Telemetry) -> None:
        self._app = app
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._credential = CredentialId(f"{app}/{Channel.FCM}")
        self._capabilities = Capabilities(
            channel=Channel.FCM,
            request_timeout_ms=int(TIMEOUT_S * 1000),
            max_in_flight=settings.connections * STREAMS,
            payload_limit_bytes=PAYLOAD_LIMIT_BYTES,
        )
        self._loop: asyncio.AbstractEventLoop
        self._pool: Pool | None = None
        self._access: AccessTokens | None = None
        self._head = b""
        self._bearer = ("", b"")
        self._denied: str | None = None

    @property
    def credential(self) -> CredentialId:
        """``<app>/fcm``."""
        return self._credential

    @property
    def capabilities(self) -> Capabilities:
        """Constant for the life of the sender."""
        return self._capabilities

    async def start(self) -> None:
        """Read the service account and begin to connect; ConfigurationError names the setting that cannot be used."""
        self._loop = asyncio.get_running_loop()
        account = read_service_account(self._app, self._settings)
        origin = _origin(self._app, self._settings)
        self._head = _head(origin, account)
        self._access = AccessTokens(
            account, trust(self._settings.ca_file), clock=self._clock, loop=self._loop, on_denied=self._deny
        )
        limits = PoolSettings(
            min_connections=1,
            max_connections=self._settings.connections,
            max_streams=STREAMS,
            idle_timeout_s=IDLE_S,
            max_age_s=MAX_AGE_S,
        )
        self._pool = Pool(origin, limits, loop=self._loop, on_event=self._saw)
        self._access.start()
        await self._pool.start()

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        assert self._access is not None
        deadline = self._loop.time() + TIMEOUT_S
        now = self._clock.now()
        ready: list[tuple[Delivery, Rendering]] = []
        refused: list[tuple[Delivery, Outcome]] = []
        rendering: Rendering | None = None
        for i, delivery in enumerate(batch):
            if rendering is None or delivery.notification is not batch[i - 1].notification:
                rendering = render(delivery.notification, now)
            refusal = _too_large(rendering)
            if refusal is None:
                ready.append((delivery, rendering))
            else:
                refused.append((delivery, refusal))
        if refused:
            self._loop.call_soon(_report_all, refused, report)
        if not ready:
            return
        if self._access.current():
            self._request(ready, report, deadline)
        else:
            self._loop.call_soon(self._access.then, partial(self._request, ready, report, deadline))

    def render(self, delivery: Delivery) -> Rendered:
        """What ``send`` would put on the wire, without the token and the authorization."""
        rendering = render(delivery.notification, self._clock.now())
        refusal = _too_large(rendering)
        return Rendered(
            headers={"content-type": "application/json"},
            body=rendering.body("…"),
            size_bytes=rendering.size_bytes,
            limit_bytes=PAYLOAD_LIMIT_BYTES,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Not ok while Google refuses the credential."""
        return Health(ok=self._denied is None, why=self._denied)

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        if self._pool is None or self._access is None:
            return
        await self._pool.drain(timeout_s)
        await self._access.stop()
        await self._pool.close()

    def _request(
        self, ready: list[tuple[Delivery, Rendering]], report: Report, deadline: float, *, again: bool = False
    ) -> None:
        """Put messages on the wire, or report why there is no access token; *again* is after a renewal."""
        assert self._pool is not None
        assert self._access is not None
        access_token = self._access.current()
        if not access_token:
            problem = self._access.problem
            for delivery, _ in ready:
                report(delivery, problem)
            return
        head = self._head + self._authorization(access_token)
        renewable = "" if again else access_token
        for delivery, rendering in ready:
            ended = partial(self._ended, delivery, rendering, report, deadline, renewable)
            self._pool.request(head, rendering.body(delivery.device.token), deadline, ended)

    def _authorization(self, access_token: str) -> bytes:
        if self._bearer[0] != access_token:
            self._bearer = (access_token, encode_headers([(b"authorization", f"Bearer {access_token}".encode())]))
        return self._bearer[1]

    def _ended(
        self,
        delivery: Delivery,
        rendering: Rendering,
        report: Report,
        deadline: float,
        renewable: str,
        result: Result,
    ) -> None:
        """One request has ended; a refused access token (*renewable*) is renewed and the request repeated, once."""
        assert self._access is not None
        if renewable and asks_for_a_new_access_token(result):
            self._access.renew(renewable)
            self._access.then(partial(self._request, [(delivery, rendering)], report, deadline, again=True))
            return
        outcome = outcome_of(result, delivery, self._clock.now())
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
        if self._pool is not None:
            self._telemetry.gauge(Metric.CONNECTIONS, self._pool.stats.connections, credential=self._credential)


def _origin(app: AppId, settings: FcmSettings) -> Origin:
    try:
        tls = trust(settings.ca_file)
    except OSError as error:
        raise ConfigurationError(f"apps.{app}.fcm.ca_file", f"cannot be used: {error.strerror or error}") from None
    try:
        return origin_of(settings.endpoint or GOOGLE, tls)
    except ValueError as error:
        raise ConfigurationError(f"apps.{app}.fcm.endpoint", str(error)) from None


def _head(origin: Origin, account: ServiceAccount) -> bytes:
    return encode_headers(
        [
            (b":method", b"POST"),
            (b":scheme", b"https"),
            (b":authority", authority_of(origin)),
            (b":path", f"/v1/projects/{account.project_id}/messages:send".encode()),
            (b"content-type", b"application/json"),
        ]
    )


def _too_large(rendering: Rendering) -> Refused | None:
    if rendering.size_bytes <= PAYLOAD_LIMIT_BYTES:
        return None
    return Refused("payload_too_large", f"{rendering.size_bytes} bytes, limit {PAYLOAD_LIMIT_BYTES}")


def _report_all(outcomes: list[tuple[Delivery, Outcome]], report: Report) -> None:
    for delivery, outcome in outcomes:
        report(delivery, outcome)
