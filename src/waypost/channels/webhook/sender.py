"""A sender to URLs: equal messages are rendered once, each is signed, each receiver has a pool of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from waypost.channels.push.endpoints import Endpoint, EndpointGuard, take_apart
from waypost.channels.push.origin import read_proxy
from waypost.channels.push.patience import Until
from waypost.channels.push.payload import named, told_alike, too_large
from waypost.channels.push.services import PushServices, head_of, trusts_of
from waypost.channels.push.watch import CredentialWatch
from waypost.channels.webhook.batches import Gathering, Posted, batch_body, batch_id
from waypost.channels.webhook.body import LIMIT_BYTES, render
from waypost.channels.webhook.errors import outcome_of
from waypost.channels.webhook.settings import CHANNEL, BodyFormat, WebhookSettings
from waypost.channels.webhook.signing import Headers, read_secret, signed
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import format_id
from waypost.domain.outcome import Outcome, Refused, Unreachable, outcome_name
from waypost.domain.time import SECOND_MS
from waypost.http2 import Result
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.events import Event
from waypost.telemetry.sink import Telemetry

MAX_IN_FLIGHT = 1000
FULL_WAIT_MS = 5 * SECOND_MS
WRITTEN_BY_S: Final = 15.0
"""Seconds from hand-over: what is not on the wire by then is not sent."""
ANSWER_BY_S: Final = 30.0
"""Seconds that a receiver has for its answer, from hand-over (requirement S4-44)."""
_FIXED: Final = (("content-type", "application/json"), ("user-agent", "waypost"))


class WebhookSender:
    """The ``Sender`` of one app to the URLs of its users and of its own."""

    def __init__(
        self, credential: CredentialId, settings: WebhookSettings, *, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._settings = settings
        self._is_batched = settings.status_batch > 1
        wait_ms = settings.status_batch_wait_ms if self._is_batched else 0
        self._section = credential.section
        self._clock = clock
        self._telemetry = telemetry
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(
            channel=CHANNEL,
            request_timeout_ms=int(ANSWER_BY_S * SECOND_MS) + wait_ms,
            max_in_flight=MAX_IN_FLIGHT,
            payload_limit_bytes=LIMIT_BYTES,
            scope_of=_receiver,
            fails_apart=True,
        )
        self._guard = EndpointGuard(self._section, ())
        self._secrets: tuple[bytes, ...] = ()
        self._loop: asyncio.AbstractEventLoop
        self._services: PushServices | None = None
        self._gathering: Gathering
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: self._services.connections() if self._services is not None else 0
        )

    async def start(self) -> None:
        """Read the secrets; ConfigurationError names the setting that cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._guard = EndpointGuard(self._section, self._settings.allow_endpoints)
        self._refuse_plain_through_a_proxy()
        self._secrets = self._read_secrets()
        trusts = trusts_of(self._section, self._settings.ca_file)
        proxy = read_proxy(self._section, self._settings.proxy)
        self._services = PushServices(self._settings, None, trusts, self._loop, self._watch.saw, proxy)
        wait_s = self._settings.status_batch_wait_ms / SECOND_MS
        self._gathering = Gathering(self._settings.status_batch, wait_s, self._loop, self._post_together)

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        for message, deliveries in told_alike(batch):
            body = render(message, self._settings.format)
            refusal = too_large(len(body), LIMIT_BYTES)
            for delivery in deliveries:
                if refusal is not None:
                    self._loop.call_soon(self._tell, delivery, refusal, report)
                    continue
                one = Posted(delivery, webhook_id(delivery), named(body, delivery.id), report)
                if self._is_batched and delivery.address.token == self._settings.status_url:
                    self._gathering.add(one)
                else:
                    self._post([one], one.webhook_id, one.body)

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``send`` would put on the wire, without path and signature."""
        body = named(render(delivery.message, self._settings.format), delivery.id)
        refusal = too_large(len(body), LIMIT_BYTES)
        if refusal is None and isinstance(address := self._address(delivery), Refused):
            refusal = address
        return Rendered(
            headers=dict((*_FIXED, ("webhook-id", webhook_id(delivery)))),
            body=body,
            size_bytes=len(body),
            limit_bytes=LIMIT_BYTES,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Report health, which is always ok: no receiver speaks of the others."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        if self._services is not None:
            self._gathering.flush()
            await self._services.stop(timeout_s)

    def _refuse_plain_through_a_proxy(self) -> None:
        for n, text in enumerate(self._settings.allow_endpoints):
            if self._settings.proxy is not None and text.lower().startswith("http://"):
                raise ConfigurationError(f"{self._section}.allow_endpoints[{n}]", "must be https:// behind a proxy")

    def _read_secrets(self) -> tuple[bytes, ...]:
        settings = self._settings
        files = ("secret_file", settings.secret_file), ("old_secret_file", settings.old_secret_file)
        needed = settings.format is BodyFormat.STANDARD or settings.old_secret_file or settings.status_url
        if self._is_batched and settings.format is not BodyFormat.STANDARD:
            raise ConfigurationError(f"{self._section}.status_batch", "needs the format standard")
        if settings.secret_file is None and needed:
            raise ConfigurationError(f"{self._section}.secret_file", "is needed to sign")
        return tuple([read_secret(self._section, field, path) for field, path in files if path is not None])

    def _post_together(self, members: Sequence[Posted]) -> None:
        self._post(members, batch_id(members), batch_body(members, self._clock.now()))

    def _post(self, members: Sequence[Posted], name: str, body: bytes) -> None:
        """Put one request on the wire, with one message in it or a batch; or say why it cannot be."""
        assert self._services is not None
        endpoint = self._address(members[0].delivery)
        ended = partial(self._ended, members)
        if isinstance(endpoint, Refused):
            self._loop.call_soon(ended, endpoint)
            return
        service = self._services.at(endpoint)
        if service is None:
            self._loop.call_soon(ended, Unreachable("receivers_full", "too many receivers are in use", FULL_WAIT_MS))
            return
        now_s = self._loop.time()
        patience = Until(now_s + WRITTEN_BY_S, now_s + ANSWER_BY_S)
        head = head_of((*_FIXED, *self._signature(name, body)))
        service.post(head, body, endpoint.path, self._clock.now(), patience, partial(self._answered, ended))

    def _signature(self, name: str, body: bytes) -> Headers:
        if not self._secrets:
            return (("webhook-id", name),)
        return signed(name, self._clock.now() // SECOND_MS, body, self._secrets)

    def _address(self, delivery: Delivery) -> Endpoint | Refused:
        endpoint = self._guard.admit(delivery.address.token)
        if endpoint is None:
            return Refused("endpoint_not_allowed", "the URL is not one that the app's settings allow")
        return endpoint

    def _answered(self, ended: Callable[[Outcome], None], result: Result) -> None:
        outcome = outcome_of(result, self._clock.now())
        self._watch.heed(outcome)
        ended(outcome)

    def _ended(self, members: Sequence[Posted], outcome: Outcome) -> None:
        for one in members:
            self._tell(one.delivery, outcome, one.report)

    def _tell(self, delivery: Delivery, outcome: Outcome, report: Report) -> None:
        """Report the outcome, with one line in the log for each attempt."""
        self._telemetry.event(
            Event.WEBHOOK_ATTEMPT,
            credential=str(self.credential),
            webhook_id=webhook_id(delivery),
            attempt=delivery.attempt,
            outcome=outcome_name(type(outcome)),
            code=getattr(outcome, "code", ""),
        )
        report(delivery, outcome)


def webhook_id(delivery: Delivery) -> str:
    """Return the name of a message to one receiver: the same at each attempt, so that repeats can be dropped."""
    return f"{format_id(delivery.id)}-{delivery.n}"


def _receiver(delivery: Delivery) -> str:
    """Return the origin that a URL hangs on; nothing is sent to what has none."""
    endpoint = take_apart(delivery.address.token)
    return "" if endpoint is None else endpoint.origin
