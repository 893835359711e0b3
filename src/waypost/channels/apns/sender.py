"""A sender to devices through APNs: few connections, many requests on each, no task per delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Final
from urllib.parse import quote

from waypost.channels.apns.credentials import Identity, identify
from waypost.channels.apns.denials import denial_in
from waypost.channels.apns.environments import ForeignTokens, Mistrust
from waypost.channels.apns.errors import (
    EXPIRED_JWT,
    TOKEN_TOO_NEW,
    UNKNOWN_DEVICE,
    WRONG_TOPIC,
    outcome_of,
    reason_of,
    taken_of,
)
from waypost.channels.apns.gateway import (
    BROADCAST,
    DEVICE,
    MOST_SOCKETS,
    OTHER,
    STREAMS,
    ApnsGateway,
    Request,
    own_gateway,
    seldom_gateway,
)
from waypost.channels.apns.payload import Rendering, render, rendered
from waypost.channels.apns.push_types import RULES, push_type_of
from waypost.channels.apns.settings import HOSTS, ApnsSettings
from waypost.channels.apns.tally import Tally
from waypost.channels.apns.verdicts import Trial, judged
from waypost.channels.push.answers import is_success
from waypost.channels.push.patience import Until, request_timeout_ms, until
from waypost.channels.push.payload import named
from waypost.channels.push.watch import CredentialWatch
from waypost.domain.audience import Audience
from waypost.domain.channel import APNS
from waypost.domain.content import ApnsPushType, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Device
from waypost.domain.message import Message
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Reach, Refused, Taken
from waypost.domain.time import Instant
from waypost.http2 import Answer, Origin, PoolEvent, Result, Sockets, Unsent, encode_headers
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry


class _Shared:
    """The rendering that devices with the same message share, ready for the wire."""

    __slots__ = ("body", "head", "kind", "note")

    def __init__(self, kind: Kind, rendering: Rendering) -> None:
        self.kind = kind
        self.head = _block(rendering.headers)
        self.body = rendering.body
        self.note = rendering.note


class _Sending:
    """A delivery on its way: where it is tried, and what was tried before."""

    foreign = False
    """Whether it is tried at the environment that is not the app's own."""
    turned = False
    """Whether the environment tried before did not know the token."""
    moved = False
    """Whether the connection took no new provider token yet."""
    renewed = False
    """Whether the provider token was too old once already."""

    def __init__(self, delivery: Delivery, report: Report, shared: _Shared, jwt: str, until: Until) -> None:
        self.delivery = delivery
        self.report = report
        self.shared = shared
        self.jwt = jwt
        self.until = until


class ApnsSender:
    """The ``Sender`` of one APNs credential; silent and visible notifications have connections of their own."""

    def __init__(
        self,
        credential: CredentialId,
        settings: ApnsSettings,
        *,
        clock: Clock,
        telemetry: Telemetry,
        tally: Callable[[], Tally] | None = None,
        ahead: bool = True,
    ) -> None:
        """Create the sender; *tally* opens the counters of all workers of this machine; None if there are no others.

        *ahead*: connect before there is something to send.
        """
        self._ahead = ahead
        self._section = credential.section
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(
            channel=APNS,
            request_timeout_ms=request_timeout_ms(),
            max_in_flight=settings.connections * STREAMS,
            payload_limit_bytes=RULES[ApnsPushType.ALERT].limit_bytes,
            scope_of=self._topic,
        )
        self._gateways: dict[bool, ApnsGateway] = {}
        """The gateways; under True that of the environment that is not the app's own."""
        self._broadcasts: ApnsGateway | None = None
        self._heals = settings.heal_environment and settings.other_gateway_known
        self._watch = CredentialWatch(
            self.credential, telemetry, lambda: sum(gateway.connections for gateway in self._every_gateway())
        )
        self._denied: CredentialRejected | None = None
        """The last refusal of connections to the app's own environment, since the last answer from it."""
        self._foreign = ForeignTokens()
        self._topics = {
            (foreign, push_type): settings.topic
            + rule.suffix
            + (f" ({OTHER[settings.environment]})" if foreign else "")
            for foreign in (False, True)
            for push_type, rule in RULES.items()
        }
        self._tally = tally or partial(Tally, None, 0, clock)
        self._mistrust: Mistrust
        self._loop: asyncio.AbstractEventLoop
        self._identity: Identity
        self._bearer = ("", b"")

    async def start(self) -> None:
        """Read the credential and begin to connect; ConfigurationError names the setting that cannot be used."""
        self._loop = asyncio.get_running_loop()
        settings = self._settings
        self._mistrust = Mistrust(settings.bad_token_share, self._tally(), self.credential, self._telemetry)
        self._identity = identify(self._section, settings)
        own = self._origin(settings.endpoint or HOSTS[settings.environment])
        sockets = Sockets(MOST_SOCKETS)
        self._gateways[False] = own_gateway(own, settings, sockets, self._saw, ahead=self._ahead)
        if self._heals:
            other = self._origin(settings.other_endpoint or HOSTS[OTHER[settings.environment]])
            self._gateways[True] = seldom_gateway(other, sockets, self._watch.saw)
        broadcasts = self._origin(settings.broadcast_endpoint or BROADCAST[settings.environment])
        self._broadcasts = seldom_gateway(broadcasts, sockets, self._saw)
        for gateway in self._every_gateway():
            await gateway.start()

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        now = self._clock.now()
        patience = until(self._loop.time())
        jwt = self._identity.jwt_at(now)
        requests: dict[Kind, list[Request]] = {}
        """The requests to devices of the app's own environment, which are most: they go out together."""
        authorization = self._authorization(jwt)
        some_are_foreign = len(self._foreign) > 0
        message: Message | None = None
        shared: _Shared | Refused | None = None
        notification_id, head, body = None, b"", b""
        for delivery in batch:
            its = delivery.message
            if shared is None or (its is not message and its != message):
                message, notification_id = its, None
                rendering = self._rendered(its, now)
                shared = rendering if isinstance(rendering, Refused) else _Shared(its.kind, rendering)
                head = b"" if isinstance(shared, Refused) else authorization + shared.head
            if isinstance(shared, Refused):
                self._loop.call_soon(report, delivery, shared)
                continue
            if (malformed := _malformed(delivery)) is not None:
                self._loop.call_soon(report, delivery, malformed)
                continue
            address = delivery.address
            is_foreign = some_are_foreign and address.token in self._foreign
            if is_foreign or not isinstance(address, Device):
                sending = _Sending(delivery, report, shared, jwt, patience)
                sending.foreign = is_foreign
                self._request(sending)
                continue
            if delivery.id != notification_id:
                notification_id, body = delivery.id, named(shared.body, delivery.id)
            requests.setdefault(shared.kind, []).append((address.token, head, body, (delivery, shared)))
        ended = partial(self._all_ended, report, jwt, patience)
        for kind, own in requests.items():
            self._gateways[False].request_all(kind, own, patience, ended)

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``send`` would put on the wire, without path and authorization."""
        now = self._clock.now()
        sendable = self._rendered(delivery.message, now)
        refusal = sendable if isinstance(sendable, Refused) else _malformed(delivery)
        rendering = render(delivery.message, self._settings, now) if isinstance(sendable, Refused) else sendable
        return Rendered(
            headers=dict(rendering.headers),
            body=named(rendering.body, delivery.id),
            size_bytes=len(rendering.body),
            limit_bytes=rendering.limit_bytes,
            refused=refusal.why if refusal else None,
        )

    def health(self) -> Health:
        """Report the sender's health: not ok while Apple refuses the credential."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        await asyncio.gather(*(gateway.stop(timeout_s) for gateway in self._every_gateway()))

    def _origin(self, url: str) -> Origin:
        return self._identity.origin(self._section, url, self._settings)

    def _rendered(self, message: Message, now: Instant) -> Rendering | Refused:
        if self._settings.certificate_file is not None and message.content.push_type is ApnsPushType.LOCATION:
            return Refused("location_needs_key", "Apple takes location pushes from signing keys alone")
        return rendered(message, self._settings, now)

    def _topic(self, delivery: Delivery) -> str:
        """Name the part of Apple that may refuse: the push type's topic, in the token's environment; or broadcasts."""
        if isinstance(delivery.address, Audience):
            return f"{self._settings.topic} (broadcast)"
        push_type = push_type_of(delivery.message.content, delivery.message.kind)
        return self._topics[delivery.address.token in self._foreign, push_type]

    def _request(self, one: _Sending) -> None:
        shared, address = one.shared, one.delivery.address
        head, body = self._authorization(one.jwt) + shared.head, named(shared.body, one.delivery.id)
        ended = partial(self._ended, one)
        if isinstance(address, Device):
            gateway, path = self._gateways[one.foreign], DEVICE + address.token
        else:
            assert self._broadcasts is not None
            gateway, path = self._broadcasts, f"/4/broadcasts/apps/{quote(self._settings.topic, safe='')}"
        gateway.request(shared.kind, path, head, body, one.until, ended)

    def _saw(self, event: PoolEvent) -> None:
        """Learn from the end of a connection about the credential: what waits would end the same way."""
        denied = denial_in(event)
        if denied is not None:
            self._denied = denied
            self._watch.heed(denied)
            self._loop.call_soon(self._give_back, denied.why)
        self._watch.saw(event)

    def _give_back(self, why: str) -> None:
        for gateway in self._every_gateway():
            gateway.give_back(why)

    def _every_gateway(self) -> list[ApnsGateway]:
        return [*self._gateways.values(), *([self._broadcasts] if self._broadcasts is not None else [])]

    def _authorization(self, jwt: str) -> bytes:
        if self._bearer[0] is not jwt:
            self._bearer = (jwt, encode_headers([(b"authorization", f"bearer {jwt}".encode())]) if jwt else b"")
        return self._bearer[1]

    def _all_ended(
        self, report: Report, jwt: str, until: Until, ended: list[tuple[tuple[Delivery, _Shared], Result]]
    ) -> None:
        """Handle the ends of first requests to the app's own environment: what was taken together, the others alone."""
        taken = 0
        for (delivery, shared), result in ended:
            try:
                if isinstance(result, Answer) and is_success(result) and not shared.note:
                    taken += 1
                    report(delivery, taken_of(result))
                    continue
                self._were_taken(taken)
                taken = 0
                self._ended(_Sending(delivery, report, shared, jwt, until), result)
            except Exception as error:  # noqa: BLE001 - a bug in one outcome must not lose those behind it
                self._loop.call_exception_handler({"message": "an outcome was not reported", "exception": error})
        self._were_taken(taken)

    def _were_taken(self, n: int) -> None:
        """Learn that the app's own environment took *n* messages."""
        if n:
            self._denied = None
            self._mistrust.heed_known(n)
            self._watch.is_well()

    def _ended(self, one: _Sending, result: Result) -> None:
        """Handle the end of a request: end its delivery, or try something better, once."""
        is_answer = isinstance(result, Answer)
        if isinstance(result, Answer) and is_success(result):
            outcome: Outcome = taken_of(result)
        elif self._tries_again(one, result):
            return
        else:
            outcome = outcome_of(result, one.delivery, self._settings.dead_token_codes, self._clock.now())
        if self._denied is not None and not one.foreign:
            if isinstance(result, Unsent):
                one.report(one.delivery, self._denied)
                return
            self._denied = None if is_answer else self._denied
        outcome = self._judge(one, outcome)
        self._watch.heed(outcome)
        one.report(one.delivery, outcome)

    def _tries_again(self, one: _Sending, result: Result) -> bool:
        """Try something better where Apple's word asks for it; tell whether that is so."""
        reason = reason_of(result) if isinstance(result, Answer) else ""
        if reason == EXPIRED_JWT and one.jwt and not one.renewed:
            one.renewed = True
            one.jwt = self._identity.renewed_jwt(one.jwt, self._clock.now())
        elif reason == TOKEN_TOO_NEW and not one.moved:
            one.moved = True
        elif reason == UNKNOWN_DEVICE and not one.turned and self._heals:
            one.turned = True
            one.foreign = not one.foreign
        else:
            return False
        self._request(one)
        return True

    def _judge(self, one: _Sending, outcome: Outcome) -> Outcome:
        """Correct *outcome* by what else is known of the token and of others like it."""
        if isinstance(outcome, Taken) and not one.turned and not one.shared.note:
            self._mistrust.heed(unknown=False)
            return outcome
        if isinstance(outcome, (Taken, Gone, Refused)):
            unknown = one.turned or (not isinstance(outcome, Taken) and outcome.code in (UNKNOWN_DEVICE, WRONG_TOPIC))
            self._mistrust.heed(unknown=unknown)
        if isinstance(outcome, Taken) and one.shared.note:
            outcome = Taken(outcome.provider_id, one.shared.note)
        if one.turned and isinstance(outcome, Taken):
            self._foreign.learn(one.delivery.address.token, foreign=one.foreign)
        elif (
            one.turned and one.foreign and isinstance(outcome, CredentialRejected) and outcome.reach is Reach.CREDENTIAL
        ):
            self._heals = False
        return judged(outcome, Trial(one.turned, one.foreign, self._mistrust.holds))


@lru_cache(maxsize=256)
def _block(headers: tuple[tuple[str, str], ...]) -> bytes:
    """Encode headers, once for all notifications of one kind and urgency that expire in the same second."""
    return encode_headers([(name.encode(), value.encode()) for name, value in headers])


def _malformed(delivery: Delivery) -> Refused | None:
    """Refuse a token that could not stand in a path; its length is Apple's affair."""
    if isinstance(delivery.address, Audience):
        return None  # a channel's id stands in a header
    token = delivery.address.token
    is_plain = token.isascii() and token.encode().isalnum()  # of bytes that is known in half of the time
    return None if is_plain else Refused("malformed_token", "the token is not hexadecimal")
