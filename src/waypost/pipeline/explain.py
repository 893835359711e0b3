"""Explain: what would happen to a submission now. Nothing is accepted, claimed or sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.best_time import BestTime, UserClock, best_time, is_best
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.dedup import ClaimKind, content_hash
from waypost.domain.delivery import Delivery, delivery_of
from waypost.domain.device import Registration, registered
from waypost.domain.drafting import ContentCheck, draft
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, CallerId, DeviceId, UserId
from waypost.domain.local_time import UTC_NAME, ChosenZone
from waypost.domain.message import message_of
from waypost.domain.notification import Lane, Notification
from waypost.domain.recipient import FactsReader, Recipient
from waypost.domain.routing import After, Candidate, RoutingTable, Ruling
from waypost.domain.settlement import Dead, Parked, Suppressed
from waypost.domain.submission import Defaults, Submission
from waypost.ports.clock import Clock, Ids
from waypost.ports.devices import Devices, Direct
from waypost.ports.sender import Rendered, Sender
from waypost.ports.templates import TemplateChoice


class ExplainedTarget(Struct, frozen=True):
    """One device: the message that it would get, or the reason why it gets none."""

    n: int
    device_id: DeviceId
    channel: Channel | None
    suppressed: str | None = None
    """The reason why routing leaves it out."""
    credential: CredentialId | None = None
    """The credential that it would be sent with now."""
    fallbacks: Sequence[CredentialId] = ()
    """Those that stand in where it is refused."""
    scope: str | None = None
    """The part of the provider whose refusals would stop it, where that has parts."""
    rendered: Rendered | None = None
    """The rendered request; None where nothing is sent, or not yet."""
    after: After | None = None
    """The address that it waits for first."""
    unsaid: Dead | None = None
    """The reason why there is no message for it: its delivery would fail."""


class Explanation(Struct, frozen=True):
    """A submission as it would be accepted, and where it would go."""

    notification: Notification
    content_hash: bytes
    dedup: tuple[ClaimKind, ...]
    """The keys it would claim; empty means that saying it again sends it again."""
    targets: tuple[ExplainedTarget, ...]
    rulings: Sequence[Ruling]
    """The verdicts of each routing rule on an address, in order."""
    zone: ChosenZone | None = None
    """The zone in which its local time is meant; None where it has none."""
    best: BestTime | None = None
    """What its best time follows from; None where it asks for none."""


class Explain(Struct, frozen=True):
    """A stage that walks a submission through the pure decisions, as intake and route would."""

    devices: Devices
    direct: Direct
    templates: TemplateChoice
    senders: Mapping[CredentialId, Sender]
    routing: RoutingTable
    defaults: Mapping[AppId, Defaults]
    clock: Clock
    ids: Ids
    checks: Mapping[AppId, Sequence[ContentCheck]] = {}
    """Of each app, what the channels that it has a credential for refuse; the same as intake's."""
    facts: FactsReader | None = None
    """Reads what features know of a user; the same as routing's."""
    in_order: Callable[[Lane, Delivery], Sequence[CredentialId]] = lambda _, delivery: (delivery.credential,)
    """The credentials that a delivery would be tried with now, in order."""
    clocks: Callable[[AppId, Sequence[Submission]], Awaitable[Mapping[UserId, UserClock]]] | None = None
    """Finds the clocks of users; the same as intake's."""

    async def explain(self, app: AppId, caller: CallerId, submission: Submission) -> Explanation:
        """Explain what would become of *submission*; InvalidRequest where it would be refused."""
        (new_id,) = self.ids.next(1)
        now = self.clock.now()
        (device,) = await self.direct.named(app, [submission], now)
        if isinstance(device, InvalidRequest):
            raise device
        (said,) = await self.templates.chosen(app, [submission])
        if isinstance(said, InvalidRequest):
            raise said
        clock = await self._clock(app, submission)
        rules = self.defaults[app], now, self.checks.get(app, ()), device
        zone, habits = (UTC_NAME, ()) if clock is None else (clock.zone.name, clock.habits)
        made = draft(submission, new_id, app, caller, *rules, template=said, zone=zone, habits=habits)
        notification = made.notification
        recipient = await self._recipient(notification)
        if isinstance(device, Registration):
            recipient = replace(recipient, devices=[registered(device, None, now)])
        routed = self.routing.route(notification, recipient, now)
        return Explanation(
            notification,
            content_hash(notification.content),
            tuple(claim.kind for claim in made.claims),
            tuple(self._target(notification, recipient, n, each) for n, each in enumerate(routed.targets)),
            routed.rulings,
            None if clock is None else clock.zone,
            best_time(send_at, habits, zone, now) if (send_at := submission.send_at) and is_best(send_at) else None,
        )

    async def rulings(self, notification: Notification) -> Sequence[Ruling]:
        """Ask the rules again of a notification that was accepted: of its user as they are known now."""
        return self.routing.route(notification, await self._recipient(notification), self.clock.now()).rulings

    async def _recipient(self, notification: Notification) -> Recipient:
        (devices,) = await self.devices.for_users([(notification.app, notification.user_id)])
        (facts,) = ({},) if self.facts is None else await self.facts([notification])
        return Recipient(devices, facts)

    async def _clock(self, app: AppId, submission: Submission) -> UserClock | None:
        if self.clocks is None or submission.user_id is None:
            return None
        return (await self.clocks(app, [submission])).get(UserId(submission.user_id))

    def _target(
        self, notification: Notification, recipient: Recipient, n: int, candidate: Candidate
    ) -> ExplainedTarget:
        match candidate.settlement:
            case Suppressed(reason):
                return ExplainedTarget(n, candidate.name, candidate.channel, reason)
            case Parked():
                return ExplainedTarget(n, candidate.name, candidate.channel)
            case None:
                credential, address = candidate.way
        message = self.routing.rendered(message_of(notification), address, recipient)
        if isinstance(message, Dead):
            return ExplainedTarget(n, candidate.name, candidate.channel, credential=credential, unsaid=message)
        message = self.routing.linked(message, notification, n, credential.channel)
        delivery = delivery_of(notification, n, credential, address, message)
        credential, *others = self.in_order(notification.lane, delivery)
        delivery = replace(delivery, credential=credential)
        sender = self.senders[credential]
        scope_of = sender.capabilities.scope_of
        scope = None if scope_of is None else scope_of(delivery)
        rendered = sender.render(delivery)
        found = n, candidate.name, candidate.channel, None, credential, others
        return ExplainedTarget(*found, scope, rendered, candidate.after)
