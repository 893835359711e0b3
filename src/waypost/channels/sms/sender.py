"""A sender of text messages through one Twilio account: a request each, over kept HTTP/1.1 connections."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from waypost.channels.push.endpoints import Endpoint, take_apart
from waypost.channels.push.http1 import Http1
from waypost.channels.push.origin import trust
from waypost.channels.push.patience import request_timeout_ms, until
from waypost.channels.push.payload import told_alike
from waypost.channels.push.watch import CredentialWatch
from waypost.channels.sms.callbacks import callback_url
from waypost.channels.sms.errors import outcome_of
from waypost.channels.sms.payload import LIMIT_CHARACTERS, render
from waypost.channels.sms.settings import CHANNEL, TWILIO, SmsSettings
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.errors import ConfigurationError
from waypost.domain.outcome import Refused
from waypost.http2 import Result, addresses
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry

IN_FLIGHT_A_CONNECTION: Final = 2
"""Deliveries held for each connection: one is on the wire, the next one is ready."""


class SmsSender:
    """The ``Sender`` of one Twilio account."""

    def __init__(
        self,
        credential: CredentialId,
        settings: SmsSettings,
        *,
        clock: Clock,
        telemetry: Telemetry,
        public_url: str | None = None,
    ) -> None:
        """Create the sender; *public_url* is where Twilio reaches this API with its reports."""
        self._settings = settings
        self._clock = clock
        self._public_url = public_url
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(
            channel=CHANNEL,
            request_timeout_ms=request_timeout_ms(),
            max_in_flight=settings.connections * IN_FLIGHT_A_CONNECTION,
            payload_limit_bytes=LIMIT_CHARACTERS * 4,
        )
        self._watch = CredentialWatch(credential, telemetry, lambda: 0 if self._http is None else self._http.in_flight)
        self._loop: asyncio.AbstractEventLoop
        self._http: Http1 | None = None
        self._fields: tuple[tuple[str, str], ...] = ()
        self._from = ("", "")
        self._path = f"/2010-04-01/Accounts/{settings.account_sid}/Messages.json"

    async def start(self) -> None:
        """Read the secrets; ConfigurationError names the setting that is wrong. Connections come with deliveries."""
        self._loop = asyncio.get_running_loop()
        settings, section = self._settings, self.credential.section
        self._from = sender_of(section, settings)
        user, secret_file = settings.account_sid, settings.auth_token_file
        if settings.api_key_sid is not None or settings.api_key_secret_file is not None:
            if settings.api_key_sid is None or settings.api_key_secret_file is None:
                raise ConfigurationError(f"{section}.api_key_sid", "a key and its secret belong together")
            user, secret_file = settings.api_key_sid, settings.api_key_secret_file
        read_secret(section, "auth_token_file", settings.auth_token_file)
        secret = read_secret(section, "api_key_secret_file", secret_file)
        basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
        self._fields = (
            ("authorization", f"Basic {basic}"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        )
        tls = trust(section, settings.ca_file, "http/1.1")
        self._http = Http1(_endpoint(section, settings), tls, addresses, settings.connections)

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        assert self._http is not None
        now, patience = self._clock.now(), until(self._loop.time())
        for message, deliveries in told_alike(batch):
            rendering = render(message, now, self._from, self._settings.fit)
            for delivery in deliveries:
                if isinstance(rendering, Refused):
                    self._loop.call_soon(report, delivery, rendering)
                    continue
                body = rendering.body(delivery.device.token, callback_url(self._public_url, delivery))
                self._http.request(self._path, self._fields, body, patience, partial(self._ended, delivery, report))

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``send`` would post, without the number and the authorization, and in how many segments."""
        rendering = render(delivery.message, self._clock.now(), self._from, self._settings.fit)
        if isinstance(rendering, Refused):
            return Rendered({}, b"", 0, LIMIT_CHARACTERS, rendering.why)
        travels = rendering.segments
        shown = {
            "content-type": "application/x-www-form-urlencoded",
            "x-encoding": travels.encoding,
            "x-segments": f"{travels.count} (each is charged)",
        }
        return Rendered(shown, rendering.body("…"), len(rendering.text), LIMIT_CHARACTERS)

    def health(self) -> Health:
        """Report the sender's health: not ok while Twilio refuses the account."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        if self._http is not None:
            await self._http.drain(timeout_s)
            await self._http.close()

    def _ended(self, delivery: Delivery, report: Report, result: Result) -> None:
        outcome = outcome_of(result, self._clock.now())
        self._watch.heed(outcome)
        report(delivery, outcome)


def sender_of(section: str, settings: SmsSettings) -> tuple[str, str]:
    """Return the field of the form that says whom messages come from; ConfigurationError where none or two do."""
    match settings.messaging_service_sid, settings.from_number:
        case str() as service, None:
            return "MessagingServiceSid", service
        case None, str() as number:
            return "From", number
        case _:
            raise ConfigurationError(f"{section}.from_number", "give either this or messaging_service_sid")


def read_secret(section: str, name: str, file: str) -> str:
    """Read a file with one secret; ConfigurationError names ``<section>.<name>`` where there is none."""
    try:
        secret = Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigurationError(f"{section}.{name}", f"cannot be read: {why}") from None
    if not secret:
        raise ConfigurationError(f"{section}.{name}", "is empty")
    return secret


def _endpoint(section: str, settings: SmsSettings) -> Endpoint:
    endpoint = take_apart(settings.endpoint or TWILIO)
    if endpoint is None or endpoint.scheme != "https":
        raise ConfigurationError(f"{section}.endpoint", "must be https://host or https://host:port")
    return endpoint
