"""Routing: where a notification goes and why not elsewhere, decided by a list of small rules. Pure.

Each rule adds addresses, or says of an address that it is left out, suppressed, put off, or reached with a credential.
``RoutingTable.route`` asks them one after another, workers and ``explain`` alike: what it shows is what the rules said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.address import Address
from waypost.domain.channel import PUSH, Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import PUT_OFF
from waypost.domain.device import Device, Platform, TokenUse, token_use_of
from waypost.domain.ids import AppId, DeviceId, NotificationId
from waypost.domain.message import Message
from waypost.domain.notification import Notification
from waypost.domain.recipient import Recipient
from waypost.domain.settlement import Dead, Parked, Suppressed
from waypost.domain.status import CONFIRMED, DeliveryStatus
from waypost.domain.time import Instant

NO_CREDENTIAL = "no_credential"
DEVICE_NOT_FOUND = "device_not_found"
DEVICE_MOVED = "device_gone"
SEND_AT = "send_at"
"""What puts off a recipient of a bulk job until the local time of the job, as if it were a rule."""
RECEIPT_LINK = "waypost_receipt"
"""The key in ``data`` of the link by which a device confirms."""

Credentials = Mapping[Channel, Sequence[CredentialId]]
"""The credentials of one app, by channel; the default comes first."""


class LeftOut(Struct, frozen=True, tag=True):
    """A verdict that an address is no target at all, since nobody meant it: no receipt speaks of it."""

    reason: str


class Deferred(Struct, frozen=True, tag=True):
    """A verdict that an address is not sent to before *until*; all rules are asked again then."""

    until: Instant


class Noted(Struct, frozen=True, tag=True):
    """A verdict that changes nothing: what a rule has to say of an address that it lets pass, for ``explain``."""

    what: str


Verdict = LeftOut | Suppressed | Deferred | Noted | CredentialId
"""The verdict of a rule on an address; of credentials the last counts, what is noted nothing, and any other is final.
"""


class After(Struct, frozen=True):
    """A wait of one address for others: *seconds* for one of them to reach *status*; then it is needless.

    See ``waits.WaitsFor``. Where nothing of these names is a target, there is nothing to wait for.
    """

    names: tuple[DeviceId, ...]
    seconds: int
    status: DeliveryStatus = DeliveryStatus.DELIVERED


class Question(Struct, frozen=True):
    """The input of the rules: a notification, its recipient, and the credentials of its app."""

    notification: Notification
    recipient: Recipient
    channels: Mapping[Platform, Channel]
    """The channel that serves a platform."""
    families: Mapping[Channel, str]
    """The family of each channel."""
    credentials: Credentials
    token_use: TokenUse
    """The use of the tokens that it is for."""
    chosen: Collection[DeviceId]
    """The names that it is narrowed to; empty is all."""
    now: Instant
    missing: str = DEVICE_NOT_FOUND
    """The reason why a chosen name reaches nothing where there is no such device."""


class Candidate(Struct, frozen=True):
    """An address, and what the rules have decided of it so far."""

    name: DeviceId
    """The name in receipts."""
    address: Address | None
    """The address; None where a name was chosen that stands for nothing."""
    channel: Channel | None
    verdict: Suppressed | Parked | None = None
    credential: CredentialId | None = None
    after: After | None = None
    """The addresses that it waits for before its first attempt, such as those that it is the fallback of."""
    is_fallback: bool = False
    """Whether it stands in for another channel; then it is attempted once at most."""

    @property
    def settlement(self) -> Suppressed | Parked | None:
        """The end of an address that is not sent to; None where it is to be sent."""
        if self.verdict is None and self.credential is None:
            return Suppressed(NO_CREDENTIAL)
        return self.verdict

    @property
    def way(self) -> tuple[CredentialId, Address]:
        """The credential and address to send with; None where it is not sent."""
        assert self.credential is not None and self.address is not None, "it has passed every rule"
        return self.credential, self.address


class Ruling(Struct, frozen=True):
    """The verdict of one rule on one address."""

    rule: str
    name: DeviceId
    verdict: Verdict


class Rule(Struct, frozen=True):
    """A reason to send somewhere, not to send, or to send later."""

    name: str
    """The name that ``explain`` shows."""
    judge: Callable[[Question, Candidate], Verdict | None] | None = None
    """The judge of each address without a final verdict; None lets it pass."""
    add: Callable[[Question, Sequence[Candidate]], Iterable[Candidate]] | None = None
    """The addresses that it adds to those not left out so far, before it judges."""
    concerns: Callable[[Notification], bool] | None = None
    """Whether it has anything to say of a notification that is routed for the first time; None: it may always have."""
    judges_alike: bool = False
    """Whether all devices of a platform, use and state are alike to it, where neither names nor channels were given."""


Renderer = Callable[[Message, Address, Recipient], Message | Dead]
"""Turns the message for all targets into the one for an address of this recipient. Pure; equal in, equal out.

It puts in what is known of the recipient, so it is not asked where there are no facts. Where the message cannot be
said, the delivery fails for the reason that is returned.
"""


class ReceiptLinks(Struct, frozen=True):
    """The signed links by which devices confirm without a session."""

    link: Callable[[AppId, NotificationId, int], str]
    """Signs the link of one target."""
    always: bool = False
    """Whether every push carries one, not only one whose fallback waits for a confirmation."""

    def are_wanted(self, notification: Notification) -> bool:
        """Tell whether pushes of *notification* carry one."""
        return self.always or any(step.until in CONFIRMED for step in notification.content.channels)


class Routed(Struct, frozen=True):
    """The result of all rules for one question."""

    targets: Sequence[Candidate]
    """The targets; a target's number is its place here."""
    rulings: Sequence[Ruling]
    """The verdicts of all rules, in order."""


class RoutingTable:
    """The rules and tables that a process routes with: the same for its worker and for ``explain``."""

    def __init__(
        self,
        channels: Mapping[Platform, Channel],
        credentials: Mapping[AppId, Credentials],
        rules: Sequence[Rule],
        renderers: Sequence[Renderer] = (),
        families: Mapping[Channel, str] | None = None,
        receipt_links: ReceiptLinks | None = None,
    ) -> None:
        self.channels = channels
        self.families = dict.fromkeys(channels.values(), PUSH) if families is None else families
        self.credentials = credentials
        self.conditions = frozenset(condition_of(name) for name in (SEND_AT, *(rule.name for rule in rules)))
        """The conditions under which rules put off: no gate lifts them, each ends at its time."""
        self._stages = _stages_of(rules)
        usual = _stages_of([rule for rule in rules if rule.concerns is None])
        self._concerns = [rule.concerns for rule in rules if rule.concerns is not None]
        self._judges_alike = len(usual) == 1 and all(rule.judges_alike for rule in usual[0].judges)
        """Whether all devices of a kind are alike to the rules that are left where none of the others is concerned."""
        self._decided: dict[_Likeness, Candidate | None] = {}
        """What all rules that judge alike say of a device, as of the first that was alike; None leaves it out."""
        self._renderers = renderers
        self._receipt_links = receipt_links

    def says_alike(self, notification: Notification, recipient: Recipient) -> bool:
        """Tell whether each address of *recipient* is told the message of *notification* as it is."""
        links = self._receipt_links
        is_linked = links is not None and links.are_wanted(notification)
        return not recipient.facts and not notification.content.overrides and not is_linked

    def rendered(self, message: Message, address: Address, recipient: Recipient) -> Message | Dead:
        """Turn *message* into the one for *address*, or say why there is none."""
        for render in self._renderers if recipient.facts else ():
            made = render(message, address, recipient)
            if isinstance(made, Dead):
                return made
            message = made
        return message

    def linked(self, message: Message, notification: Notification, n: int, channel: Channel) -> Message:
        """Add to *message* for target *n* the link by which its device confirms, where that is wanted."""
        links = self._receipt_links
        if links is None or self.families.get(channel, PUSH) != PUSH or not links.are_wanted(notification):
            return message
        data = message.content.data | {RECEIPT_LINK: links.link(notification.app, notification.id, n)}
        return replace(message, content=replace(message.content, data=data))

    def route(
        self, notification: Notification, recipient: Recipient, now: Instant, again: Collection[DeviceId] = ()
    ) -> Routed:
        """Decide where *notification* goes; *again* names the open targets of one that was routed before.

        A device is looked up each time: its new token is used, and one that is gone or another's gets nothing.
        """
        rulings: list[Ruling] = []
        return Routed(self._judged(self._question(notification, recipient, now, again), rulings), rulings)

    def targets(self, notification: Notification, recipient: Recipient, now: Instant) -> Sequence[Candidate]:
        """Decide where *notification* goes, as ``route`` does that also tells why.

        Most go to all devices, of which those that are alike are judged once for all.
        """
        judged = self.judged_alike(notification, recipient, now)
        if judged is None:
            return self.route(notification, recipient, now).targets
        return [
            Candidate(device.device_id, device, decided.channel, decided.verdict, decided.credential)
            for device, decided in judged
        ]

    def judged_alike(
        self, notification: Notification, recipient: Recipient, now: Instant
    ) -> list[tuple[Device, Candidate]] | None:
        """Return each device that *notification* goes to, with what is decided of all that are alike.

        None where each has to be judged for itself.
        """
        content = notification.content
        is_plain = self._judges_alike and content.to is None and not content.channels
        if not is_plain or any([concerns(notification) for concerns in self._concerns]):
            return None
        app, wanted, known = notification.app, token_use_of(content), self._decided
        found: list[tuple[Device, Candidate]] = []
        for device in recipient.devices:
            alike = (app, wanted, device.platform, device.token_use, device.active)
            if alike not in known:
                targets = self.route(notification, Recipient((device,)), now).targets
                known[alike] = targets[0] if targets else None
            decided = known[alike]
            if decided is not None:
                found.append((device, decided))
        return found

    def _question(
        self, notification: Notification, recipient: Recipient, now: Instant, again: Collection[DeviceId]
    ) -> Question:
        content = notification.content
        return Question(
            notification,
            recipient,
            self.channels,
            self.families,
            self.credentials.get(notification.app, {}),
            token_use_of(content),
            again or (notification.device_ids if content.to is None else ()),
            now,
            DEVICE_MOVED if again else DEVICE_NOT_FOUND,
        )

    def _judged(self, question: Question, rulings: list[Ruling]) -> Sequence[Candidate]:
        """Ask the rules; what they say is added to *rulings*."""
        targets: list[Candidate] = []
        for stage in self._stages:
            if stage.add is not None:
                targets += stage.add(question, targets)
            targets = [it for each in targets if (it := _judged(question, each, stage.judges, rulings)) is not None]
        return _in_steps(question, targets) if question.notification.content.channels else targets


_Likeness = tuple[AppId, TokenUse, Platform, TokenUse | str, bool]


class _Stage(Struct, frozen=True):
    """The rules that judge until another one adds: an address meets all of them in one go."""

    add: Callable[[Question, Sequence[Candidate]], Iterable[Candidate]] | None
    judges: list[Rule] = []


def _stages_of(rules: Sequence[Rule]) -> Sequence[_Stage]:
    stages: list[_Stage] = []
    for rule in rules:
        if rule.add is not None or not stages:
            stages.append(_Stage(rule.add))
        if rule.judge is not None:
            stages[-1].judges.append(rule)
    return stages


def _judged(
    question: Question, candidate: Candidate, judges: Sequence[Rule], rulings: list[Ruling]
) -> Candidate | None:
    """Ask *judges* of *candidate* until one has the last word; None where it is left out."""
    if candidate.verdict is not None:
        return candidate
    for rule in judges:
        verdict = None if rule.judge is None else rule.judge(question, candidate)
        if verdict is None:
            continue
        rulings.append(Ruling(rule.name, candidate.name, verdict))
        if isinstance(verdict, Noted):
            continue
        if isinstance(verdict, CredentialId):
            candidate = _decided(candidate, None, verdict)
        elif isinstance(verdict, LeftOut):
            return None
        elif isinstance(verdict, Deferred):
            until = min(verdict.until, question.notification.expires_at)
            return _decided(candidate, Parked(condition_of(rule.name), until), candidate.credential)
        else:
            return _decided(candidate, verdict, candidate.credential)
    return candidate


def _decided(candidate: Candidate, verdict: Suppressed | Parked | None, credential: CredentialId | None) -> Candidate:
    named = candidate.name, candidate.address, candidate.channel
    return Candidate(*named, verdict, credential, candidate.after, candidate.is_fallback)


def condition_of(rule: str) -> str:
    """Return the condition under which what *rule* puts off waits."""
    return f"{PUT_OFF}{rule}"


def place_of(steps: Sequence[ChannelStep], channel: Channel, family: str) -> int | None:
    """Return the number of the first step that means *channel*; None where none does."""
    return next((n for n, step in enumerate(steps) if step.means(channel, family)), None)


def _in_steps(question: Question, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Put *candidates* in the order of the steps; what comes after a step that is waited for, waits for its targets.

    Where that step has none, it waits for the step before that.
    """
    steps, families = question.notification.content.channels, question.families
    last = len(steps) - 1
    places: list[list[Candidate]] = [[] for _ in steps]
    for each in candidates:
        place = None if each.channel is None else place_of(steps, each.channel, families.get(each.channel, PUSH))
        places[last if place is None else place].append(each)
    ordered: list[Candidate] = []
    after: After | None = None
    is_fallback = False
    for step, found in zip(steps, places, strict=True):
        ordered += [replace(each, after=each.after or after, is_fallback=is_fallback) for each in found]
        if step.until is not None:
            is_fallback = True
            after = After(tuple([each.name for each in found]), step.for_s, step.until) if found else after
    return ordered
