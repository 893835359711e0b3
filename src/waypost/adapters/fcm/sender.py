"""Sends to devices through FCM: one request per message, 100 at once on each connection, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from waypost.adapters.fcm.credentials import read_service_account
from waypost.adapters.fcm.errors import asks_for_a_new_access_token, outcome_of
from waypost.adapters.fcm.oauth import AccessTokens
from waypost.adapters.fcm.payload import PAYLOAD_LIMIT_BYTES, Rendering, render
from waypost.adapters.fcm.settings import FcmSettings
from waypost.adapters.push.origin import authority_of, origin_of, post_to, trust
from waypost.adapters.push.payload import too_large
from waypost.adapters.push.watch import CredentialWatch
from waypost.domain.delivery import Delivery
from waypost.domain.ids import AppId, CredentialId
from waypost.domain.notification import Channel
from waypost.http2 import Pool, PoolSettings, Result, encode_headers
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
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
        self._rules = settings.token_rules()
        self.credential: Final = CredentialId(f"{app}/{Channel.FCM}")
        self.capabilities: Final = Capabilities(
            channel=Channel.FCM,
            request_timeout_ms=int(TIMEOUT_S * 1000),
            max_in_flight=settings.connections * STREAMS,
            payload_limit_bytes=PAYLOAD_LIMIT_BYTES,
        )
        self._loop: asyncio.AbstractEventLoop
        self._pool: Pool | None = None
        self._access: AccessTokens | None = None
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: self._pool.stats.connections if self._pool is not None else 0
        )
        self._head = b""
        self._bearer = ("", b"")

    async def start(self) -> None:
        """Read the service account and begin to connect; ConfigurationError names the setting that cannot be used."""
        self._loop = asyncio.get_running_loop()
        section = f"apps.{self._app}.fcm"
        account = read_service_account(self._app, self._settings)
        origin = origin_of(section, self._settings.endpoint or GOOGLE, self._settings.ca_file)
        self._head = post_to(authority_of(origin)) + encode_headers(
            [
                (b":path", f"/v1/projects/{account.project_id}/messages:send".encode()),
                (b"content-type", b"application/json"),
            ]
        )
        # A context of its own: a pool offers nothing but HTTP/2 with the one it is given.
        tls = trust(section, self._settings.ca_file)
        self._access = AccessTokens(account, tls, clock=self._clock, loop=self._loop, on_denied=self._watch.heed)
        limits = PoolSettings(
            min_connections=1,
            max_connections=self._settings.connections,
            max_streams=STREAMS,
            idle_timeout_s=IDLE_S,
            max_age_s=MAX_AGE_S,
        )
        self._pool = Pool(origin, limits, loop=self._loop, on_event=self._watch.saw)
        self._access.start()
        await self._pool.start()

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        assert self._access is not None
        deadline = self._loop.time() + TIMEOUT_S
        now = self._clock.now()
        ready: list[tuple[Delivery, Rendering]] = []
        rendering: Rendering | None = None
        for i, delivery in enumerate(batch):
            if rendering is None or delivery.notification is not batch[i - 1].notification:
                rendering = render(delivery.notification, now)
            refusal = too_large(rendering.size_bytes, PAYLOAD_LIMIT_BYTES)
            if refusal is None:
                ready.append((delivery, rendering))
            else:
                self._loop.call_soon(report, delivery, refusal)
        if not ready:
            return
        if self._access.current():
            self._request(ready, report, deadline)
        else:
            self._loop.call_soon(self._access.then, partial(self._request, ready, report, deadline))

    def render(self, delivery: Delivery) -> Rendered:
        """What ``send`` would put on the wire, without the token and the authorization."""
        rendering = render(delivery.notification, self._clock.now())
        refusal = too_large(rendering.size_bytes, PAYLOAD_LIMIT_BYTES)
        return Rendered(
            headers={"content-type": "application/json"},
            body=rendering.body("…"),
            size_bytes=rendering.size_bytes,
            limit_bytes=PAYLOAD_LIMIT_BYTES,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Not ok while Google refuses the credential."""
        return self._watch.health()

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
        outcome = outcome_of(result, delivery, self._clock.now(), self._rules)
        self._watch.heed(outcome)
        report(delivery, outcome)
