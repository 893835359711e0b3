"""Posting to subscriptions: a few at a time are encrypted; those at one push service go on the wire together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from waypost.channels.push.addresses import AllowedRange
from waypost.channels.push.encryption import InvalidKeys, SenderKeys, encrypt, new_salt
from waypost.channels.push.endpoints import Endpoint
from waypost.channels.push.patience import Until
from waypost.channels.push.payload import named
from waypost.channels.push.services import Head, Post, PushServices
from waypost.channels.push.turns import Turns
from waypost.channels.push.watch import CredentialWatch
from waypost.domain.delivery import Delivery
from waypost.domain.device import Device
from waypost.domain.outcome import Outcome, Refused, Unanswered, Unreachable
from waypost.domain.time import SECOND_MS, Instant
from waypost.http2 import Result
from waypost.ports.clock import Clock
from waypost.ports.sender import Report

FULL_WAIT_MS: Final = 5 * SECOND_MS
FULL: Final = Unreachable("push_services_full", "too many push services are in use", FULL_WAIT_MS)
NOT_READY: Final = Refused("not_made_ready", "an error of Waypost kept it from being sent")
NOT_READ: Final = Unanswered("bad_answer", "an error of Waypost kept the answer from being read")


class Shared(Protocol):
    """The rendering that devices with the same message share, ready for encryption and the wire."""

    @property
    def plaintext(self) -> bytes:
        """The payload, which names no delivery yet."""
        ...

    @property
    def refused(self) -> Refused | None:
        """Why it can be sent to nobody."""
        ...

    def head(self, endpoint: Endpoint, *, encrypted: bool) -> Head:
        """Return the headers that all with keys, or all without, have at the push service of *endpoint*."""
        ...


class _Waiting(NamedTuple):
    """A delivery that waits for its turn to be made ready."""

    delivery: Delivery
    shared: Shared
    until: Until
    report: Report


class Posting:
    """The way of one sender's deliveries to their push services, from when they are added until they are reported.

    *address_of* says where a device is reached, *outcome_of* what an answer means (the result, when it came, and
    whether the operator named the push service).
    """

    def __init__(
        self,
        services: PushServices,
        sender_keys: SenderKeys,
        address_of: Callable[[Device], Endpoint | Refused],
        outcome_of: Callable[[Result, Instant, bool], Outcome],
        watch: CredentialWatch,
        clock: Clock,
    ) -> None:
        """Create it on the running event loop."""
        self._services = services
        self._sender_keys = sender_keys
        self._address_of = address_of
        self._outcome_of = outcome_of
        self._watch = watch
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._turns = Turns(self._take, clock.monotonic)

    def add(self, delivery: Delivery, shared: Shared, until: Until, report: Report) -> None:
        """Queue a delivery; it is reported exactly once, never before this returns."""
        self._turns.add(_Waiting(delivery, shared, until, report))

    def connections(self) -> int:
        """Count the open connections to all push services."""
        return self._services.connections()

    async def stop(self, timeout_s: float) -> None:
        """Put on the wire what waits, let requests in flight end, then close."""
        self._turns.finish()
        await self._services.stop(timeout_s)

    def _take(self, some: Sequence[_Waiting]) -> None:
        """Send what has its turn, what goes to one push service together, or say why it cannot be sent."""
        parts: dict[tuple[str, AllowedRange, bool, Until], tuple[Endpoint, list[Post]]] = {}
        for one in some:
            ready = self._ready(one)
            if isinstance(ready, Refused):
                self._tell(one, ready)
            else:
                endpoint, post = ready
                key = endpoint.origin, endpoint.reach, endpoint.named, one.until
                parts.setdefault(key, (endpoint, []))[1].append(post)
        now = self._clock.now()
        for key, (endpoint, posts) in parts.items():
            refusal = self._posted(endpoint, posts, now, key[-1])
            if refusal is not None:
                for post in posts:
                    self._tell(post[-1], refusal)

    def _ready(self, one: _Waiting) -> tuple[Endpoint, Post] | Refused:
        try:
            return one.shared.refused or self._made_ready(one)
        except Exception as error:  # noqa: BLE001 - a bug in one message must not lose those behind it
            self._say("a message was not made ready", error)
            return NOT_READY

    def _made_ready(self, one: _Waiting) -> tuple[Endpoint, Post] | Refused:
        """Encrypt a message for its device, if that has keys, and say where it goes."""
        device = one.delivery.device
        endpoint = self._address_of(device)
        if isinstance(endpoint, Refused):
            return endpoint
        keys, body = device.keys, named(one.shared.plaintext, one.delivery.id)
        if keys is not None:
            try:
                body = encrypt(body, keys, self._sender_keys.next(self._loop.time()), new_salt())
            except InvalidKeys as error:
                return Refused("invalid_subscription", str(error))
        return endpoint, (one.shared.head(endpoint, encrypted=keys is not None), body, endpoint.path, one)

    def _posted(self, endpoint: Endpoint, posts: Sequence[Post], now: Instant, until: Until) -> Outcome | None:
        """Put messages to one push service on the wire, or say why none of them is."""
        try:
            service = self._services.at(endpoint)
            if service is None:
                return FULL
            service.post_all(posts, now, until, partial(self._ended, endpoint.named))
        except Exception as error:  # noqa: BLE001 - a bug at one push service must not lose what goes to others
            self._say("messages were not put on the wire", error)
            return NOT_READY
        return None

    def _ended(self, named: bool, ended: list[tuple[_Waiting, Result]]) -> None:
        """Report the ends of requests to one push service."""
        now = self._clock.now()
        for one, result in ended:
            outcome: Outcome
            try:
                outcome = self._outcome_of(result, now, named)
            except Exception as error:  # noqa: BLE001 - a bug in one outcome must not lose those behind it
                self._say("an answer was not read", error)
                outcome = NOT_READ
            self._tell(one, outcome)

    def _tell(self, one: _Waiting, outcome: Outcome) -> None:
        """Report what became of a delivery, then note what it says of the credential."""
        try:
            one.report(one.delivery, outcome)
            self._watch.heed(outcome)
        except Exception as error:  # noqa: BLE001 - a bug in one outcome must not lose those behind it
            self._say("an outcome was not reported", error)

    def _say(self, what: str, error: Exception) -> None:
        self._loop.call_exception_handler({"message": what, "exception": error})
