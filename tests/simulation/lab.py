"""The providers: what they do with a delivery, what they say, and what they know was sent, which is the truth."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tests.simulation.paces import ANSWER_S, GIVEN_UP_S
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.ids import DeviceId, NotificationId
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Reach,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)
from waypost.ports.sender import Capabilities, Health, Rendered, Report

if TYPE_CHECKING:
    from tests.simulation.process import Process

NOTHING_TAKEN: Final = (Gone, Refused, CredentialRejected, Throttled, Unreachable)
"""The answers after which it is certain that the provider has nothing."""
WEATHERS: Final = ("fine", "fine", "mixed", "mixed", "away", "busy", "denying", "silent")


class Sent(Struct, eq=False):
    """A delivery as it arrived at its provider."""

    process: Process
    delivery: Delivery
    at_s: float
    leased_at_s: float
    took: bool
    """Whether the provider has it from now on, whatever it says."""
    answer: Outcome | None = None
    """What the worker was told; None until then."""
    is_past: bool = False
    """Whether a replay began since."""

    @property
    def is_lost(self) -> bool:
        """Whether its worker may be taken for dead, so that another one sends again; its outcome may come late."""
        return self.process.is_dead or self.process.was_disturbed(self.leased_at_s, GIVEN_UP_S)


class Lab:
    """All providers of a simulation."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.weather: dict[Channel, str] = {}
        self.dead_tokens: set[str] = set()
        self.sent: dict[tuple[NotificationId, DeviceId], list[Sent]] = {}
        """What arrived for each target."""
        self.taken: set[tuple[NotificationId, DeviceId]] = set()

    def has_taken(self, told: NotificationId, n: int, device: DeviceId) -> bool:
        """Tell whether it was taken for *device*, or as target *n* of a worker that died before it said whose number
        that was: the device that reports by it may have another number by then.
        """
        return (told, device) in self.taken or any(
            each.is_lost and each.took and each.delivery.n == n
            for (of, _), arrived in self.sent.items()
            for each in arrived
            if of == told
        )

    def change(self, channel: Channel, *, calm: bool) -> None:
        """Draw the weather of a provider anew."""
        self.weather[channel] = "fine" if calm else self._chance.choice(WEATHERS)

    def new_round(self, notification_id: NotificationId) -> None:
        """Let a replay send again what arrived before it."""
        for (told, _), arrived in self.sent.items():
            for each in arrived if told == notification_id else ():
                each.is_past = True

    def draw(self, delivery: Delivery) -> tuple[bool, Outcome, float]:
        """Draw whether the provider takes *delivery*, what it says, and after how many seconds."""
        chance = self._chance
        weather = self.weather.get(delivery.credential.channel, "fine")
        token = getattr(delivery.address, "token", "")
        after_s = chance.random() * (0.2 if chance.random() < 0.8 else 2.0)
        if token in self.dead_tokens:
            return False, Gone("Unregistered"), after_s
        outcome = self._outcome(weather)
        if isinstance(outcome, Gone):
            self.dead_tokens.add(token)
        if isinstance(outcome, Unanswered):
            return chance.random() < 0.5, outcome, after_s if chance.random() < 0.5 else ANSWER_S
        return isinstance(outcome, Taken), outcome, after_s

    def _outcome(self, weather: str) -> Outcome:
        chance, draw = self._chance, self._chance.random()
        wait_ms = chance.choice((None, 300, 2_000, 9_000))
        if weather == "away":
            return Unreachable("ServiceUnavailable", "away", wait_ms)
        if weather == "silent":
            return Unanswered("timeout", "no answer", wait_ms)
        if weather == "busy" and draw < 0.8:
            return Throttled("TooManyRequests", wait_ms, whole=chance.random() < 0.5)
        if weather == "denying" and draw < 0.7:
            return CredentialRejected("InvalidProviderToken", "denied", chance.choice(tuple(Reach)))
        if draw < (0.92 if weather == "fine" else 0.5):
            return Taken("p1")
        kinds: tuple[Outcome, ...] = (
            Gone("Unregistered"),
            Refused("BadMessage", "refused"),
            CredentialRejected("Forbidden", "denied", Reach.DEVICE),
            Throttled("TooManyRequests", wait_ms),
            Unreachable("reset", "reset before it was written", wait_ms),
            Unanswered("reset", "reset after it was written", wait_ms),
            Unanswered("timeout", "no answer", wait_ms),
        )
        return chance.choice(kinds)


class SimulatedSender:
    """See Sender: hands over to the lab and answers when it does, or when it is stopped."""

    def __init__(self, credential: CredentialId, process: Process) -> None:
        self.credential = credential
        self.capabilities = Capabilities(credential.channel, int(ANSWER_S * 1000), 12, 4096)
        self._process = process
        self._open: dict[tuple[NotificationId, int], tuple[Sent, Report]] = {}
        self._is_closed = False

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """See Sender."""
        world = self._process.world
        if self._is_closed:
            for delivery in batch:
                world.loop.call_soon(report, delivery, Unreachable("closed", "the process ends"))
            return
        for delivery in batch:
            took, outcome, after_s = world.lab.draw(delivery)
            sent = world.referee.arrived(self._process, delivery, took=took)
            self._open[delivery.id, delivery.n] = sent, report
            world.loop.call_later(after_s, self._answer, sent, outcome)

    def _answer(self, sent: Sent, outcome: Outcome) -> None:
        key = (sent.delivery.id, sent.delivery.n)
        if self._open.get(key, (None, None))[0] is sent:
            _, report = self._open.pop(key)
            sent.answer = outcome
            report(sent.delivery, outcome)

    async def start(self) -> None:
        """See Sender."""

    async def stop(self, timeout_s: float) -> None:
        """See Sender: what has no answer yet gets none, and nothing more goes out."""
        self._is_closed = True
        for sent, _ in list(self._open.values()):
            self._answer(sent, Unanswered("stopped", "the process ended"))

    def render(self, delivery: Delivery) -> Rendered:
        """See Sender."""
        return Rendered({}, b"", 0, 4096)

    def health(self) -> Health:
        """See Sender."""
        return Health(ok=True)
