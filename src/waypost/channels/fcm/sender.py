"""Sends to devices through FCM: one request per message, 100 at once on each connection, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from waypost.channels.fcm.errors import asks_for_a_new_access_token, outcome_of, taken_of
from waypost.channels.fcm.grants import project_and_grants
from waypost.channels.fcm.oauth import AccessTokens
from waypost.channels.fcm.payload import PAYLOAD_LIMIT_BYTES, Rendering, render, rendered
from waypost.channels.fcm.platforms import ANDROID
from waypost.channels.fcm.settings import CHANNEL, GOOGLE, FcmSettings
from waypost.channels.fcm.wire import STREAMS, FcmBatch, FcmConnections, FcmRequest
from waypost.channels.push.answers import is_success
from waypost.channels.push.origin import authority_of, origin_of, post_to, sized, trust
from waypost.channels.push.patience import Until, request_timeout_ms, until
from waypost.channels.push.payload import named
from waypost.channels.push.watch import CredentialWatch
from waypost.domain.content import Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Device, Platform
from waypost.domain.ids import NotificationId
from waypost.domain.message import Message
from waypost.domain.outcome import Refused
from waypost.http2 import Answer, Result, encode_headers
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry

URGENT = (Urgency.CRITICAL, Urgency.HIGH)

Ready = tuple[Delivery, Rendering]
"""A delivery, and its rendering."""


class FcmSender:
    """The ``Sender`` of one Firebase project."""

    def __init__(
        self,
        credential: CredentialId,
        settings: FcmSettings,
        *,
        clock: Clock,
        telemetry: Telemetry,
        ahead: bool = True,
    ) -> None:
        """Create the sender; *ahead*: connect and ask for access before there is something to send."""
        self._ahead = ahead
        self._settings = settings
        self._clock = clock
        self._rules = settings.token_rules()
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(
            channel=CHANNEL,
            request_timeout_ms=request_timeout_ms(),
            max_in_flight=settings.connections * STREAMS,
            payload_limit_bytes=PAYLOAD_LIMIT_BYTES,
        )
        self._loop: asyncio.AbstractEventLoop
        self._wire: FcmConnections | None = None
        self._access: AccessTokens | None = None
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: self._wire.connections if self._wire is not None else 0
        )
        self._head = b""
        self._bearer = ("", b"")

    async def start(self) -> None:
        """Read the service account and begin to connect; ConfigurationError names the setting that cannot be used."""
        self._loop = asyncio.get_running_loop()
        section = self.credential.section
        tls = trust(section, self._settings.ca_file, "http/1.1")
        project_id, grants = await project_and_grants(section, self._settings, tls, self._clock)
        origin = origin_of(section, self._settings.endpoint or GOOGLE, self._settings.ca_file, self._settings.proxy)
        self._head = post_to(authority_of(origin)) + encode_headers(
            [
                (b":path", f"/v1/projects/{project_id}/messages:send".encode()),
                (b"content-type", b"application/json"),
            ]
        )
        self._access = AccessTokens(grants, loop=self._loop, on_denied=self._watch.heed)
        least, most = int(self._ahead), self._settings.connections
        self._wire = FcmConnections(origin, least, most, loop=self._loop, on_event=self._watch.saw)
        self._access.start(ahead=self._ahead)
        await self._wire.start()

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        assert self._access is not None
        patience = until(self._loop.time())
        ready = self._rendered(batch, report)
        if not ready:
            return
        if self._access.current():
            self._request(ready, report, patience)
        else:
            self._loop.call_soon(self._access.then, partial(self._request, ready, report, patience))

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``send`` would put on the wire, without the token and the authorization."""
        now = self._clock.now()
        platform = _platform_of(delivery)
        got = rendered(delivery.message, now, self._settings, platform)
        shown = render(delivery.message, now, self._settings.form, platform) if isinstance(got, Refused) else got
        return Rendered(
            headers={"content-type": "application/json"},
            body=shown.body("…", delivery.id, validate_only=self._settings.validate_only),
            size_bytes=shown.size_bytes,
            limit_bytes=shown.limit_bytes,
            refused=got.why if isinstance(got, Refused) else None,
        )

    def health(self) -> Health:
        """Report the sender's health: not ok while Google refuses the credential."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        if self._wire is None or self._access is None:
            return
        await self._wire.drain(timeout_s)
        await self._access.stop()
        await self._wire.close()

    def _rendered(self, batch: Sequence[Delivery], report: Report) -> list[Ready]:
        """Render what can be sent; neighbours with the same message and platform share one rendering."""
        now = self._clock.now()
        ready: list[Ready] = []
        message: Message | None = None
        platform: Platform | None = None
        got: Rendering | Refused | None = None
        for delivery in batch:
            its, on = delivery.message, _platform_of(delivery)
            if got is None or on != platform or (its is not message and its != message):
                message, platform = its, on
                got = rendered(its, now, self._settings, on)
            if isinstance(got, Refused):
                self._loop.call_soon(report, delivery, got)
            else:
                ready.append((delivery, got))
        return ready

    def _request(self, ready: list[Ready], report: Report, patience: Until, *, again: bool = False) -> None:
        """Put messages on the wire, or report why there is no access token; *again* is after a renewal."""
        assert self._wire is not None
        assert self._access is not None
        access_token = self._access.current()
        if not access_token:
            problem = self._access.problem
            for delivery, _ in ready:
                report(delivery, problem)
            return
        head = self._head + self._authorization(access_token)
        together = FcmBatch(patience, partial(self._ended, report, patience, "" if again else access_token))
        urgent: list[FcmRequest] = []
        others: list[FcmRequest] = []
        line = others
        validate_only = self._settings.validate_only
        alike: Rendering | None = None
        notification_id: NotificationId | None = None
        rest = b""
        for one in ready:
            delivery, rendering = one
            if rendering is not alike or delivery.id != notification_id:
                alike, notification_id = rendering, delivery.id
                rest = named(rendering.rest, notification_id)
                line = urgent if delivery.message.urgency in URGENT else others
            body = rendering.start(delivery.address.token, validate_only=validate_only) + rest
            line.append((head + sized(len(body)), body, one, together))
        self._wire.send(urgent, urgent=True)
        self._wire.send(others, urgent=False)

    def _authorization(self, access_token: str) -> bytes:
        if self._bearer[0] != access_token:
            self._bearer = (access_token, encode_headers([(b"authorization", f"Bearer {access_token}".encode())]))
        return self._bearer[1]

    def _ended(self, report: Report, patience: Until, renewable: str, ended: list[tuple[Ready, Result]]) -> None:
        """Handle the ends of requests; renew a refused access token (*renewable*) and repeat its requests, once."""
        for one, result in ended:
            try:
                if isinstance(result, Answer) and is_success(result):
                    self._watch.is_well()
                    report(one[0], taken_of(result))
                elif renewable and asks_for_a_new_access_token(result):
                    self._renewed([one], report, patience, renewable)
                else:
                    outcome = outcome_of(result, one[0], self._clock.now(), self._rules)
                    self._watch.heed(outcome)
                    report(one[0], outcome)
            except Exception as error:  # noqa: BLE001 - a bug in one outcome must not lose those behind it
                self._loop.call_exception_handler({"message": "an outcome was not reported", "exception": error})

    def _renewed(self, ready: list[Ready], report: Report, patience: Until, refused: str) -> None:
        assert self._access is not None
        self._access.renew(refused)
        self._access.then(partial(self._request, ready, report, patience, again=True))


def _platform_of(delivery: Delivery) -> Platform:
    """Return the platform of the address; a topic's listeners get what Android reads, and the common notification."""
    address = delivery.address
    return address.platform if isinstance(address, Device) else ANDROID
