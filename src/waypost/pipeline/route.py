"""Route: from a leased item and its user's devices to deliveries, or the reasons why not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.address import UNROUTED, name_of
from waypost.domain.content import UNREADABLE
from waypost.domain.delivery import Delivery, FailureClass, OpenTarget, Target, delivery_of, is_expired
from waypost.domain.message import Message, message_of
from waypost.domain.notification import Guarantee, Notification
from waypost.domain.recipient import Recipient
from waypost.domain.routing import SEND_AT, Candidate, RoutingTable, condition_of
from waypost.domain.settlement import Change, Dead, Expired, Parked, Suppressed
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.domain.waits import WaitsFor
from waypost.ports.work import WorkItem


class Plan(Struct, frozen=True):
    """The deliveries and changes that follow from one leased item."""

    item: WorkItem
    deliveries: tuple[Delivery, ...] = ()
    changes: tuple[Change, ...] = ()
    """The changes of targets decided without sending."""
    targets: tuple[Target, ...] | None = None
    """The whole resolved list of fresh work."""
    verdict: NotificationStatus | None = None
    """The verdict on a whole notification decided before it was routed."""


def plan(item: WorkItem, recipient: Recipient, table: RoutingTable, now: Instant) -> Plan:
    """Decide what each target of *item* gets."""
    if item.notification.content is UNREADABLE:
        return _buried(item, "unreadable", "its stored content cannot be read", now)
    if item.open_targets is None:
        return _plan_fresh(item, recipient, table, now)
    return _plan_again(item, item.open_targets, recipient, table, now)


def _plan_fresh(item: WorkItem, recipient: Recipient, table: RoutingTable, now: Instant) -> Plan:
    notification = item.notification
    if is_expired(notification, 1, now):
        return Plan(item, verdict=NotificationStatus.EXPIRED)
    early = _early(notification, now)
    is_alike = early is None and table.says_alike(notification, recipient)
    if is_alike and (whole := _plan_alike(item, recipient, table, now)) is not None:
        return whole
    found = table.targets(notification, recipient, now)
    if not found:
        return Plan(item, targets=(), verdict=NotificationStatus.NO_TARGETS)
    message = message_of(notification)
    deliveries: list[Delivery] = []
    changes: list[Change] = []
    targets: list[Target] = []
    for n, each in enumerate(found):
        decided = each.settlement or early
        waits = None if each.after is None or isinstance(decided, Suppressed) else _wait(each, found[:n])
        if waits is not None:
            targets.append(Target(n, each.name, each.channel, None, waits))
        elif decided is None:
            targets.append(Target(n, each.name, each.channel))
            if is_alike and not each.is_fallback:
                deliveries.append(delivery_of(notification, n, *each.way, message))
                continue
            said = table.rendered(message, each.way[1], recipient)
            if isinstance(said, Dead):
                changes.append(Change(n, 1, said, now))
            else:
                deliveries.append(_delivery(notification, each, n, said, table))
        else:
            why = decided.reason if isinstance(decided, Suppressed) else None
            targets.append(Target(n, each.name, each.channel, why))
            changes.append(Change(n, 1, decided, now))
    return Plan(item, tuple(deliveries), tuple(changes), tuple(targets))


def _plan_alike(item: WorkItem, recipient: Recipient, table: RoutingTable, now: Instant) -> Plan | None:
    """Send the same to all devices, as most notifications are; None where anything else is decided of one of them."""
    notification = item.notification
    message = message_of(notification)
    id_, agreed = notification.id, (1, 0, 0, notification.guarantee, notification.retry_policy)
    deliveries: list[Delivery] = []
    targets: list[Target] = []
    for n, (device, decided) in enumerate(table.judged_alike(notification, recipient, now) or ()):
        if decided.credential is None or decided.verdict is not None:
            return None
        targets.append(Target(n, device.device_id, decided.channel))
        deliveries.append(Delivery(id_, n, decided.credential, device, message, *agreed))
    return Plan(item, tuple(deliveries), (), tuple(targets)) if deliveries else None


def _early(notification: Notification, now: Instant) -> Parked | None:
    """Put off what came before its time: a recipient of a bulk job is routed as the job comes to them."""
    due_at = notification.scheduled_at
    return None if due_at is None or due_at <= now else Parked(condition_of(SEND_AT), due_at)


def _delivery(
    notification: Notification,
    candidate: Candidate,
    n: int,
    said: Message,
    table: RoutingTable,
    attempt: int = 1,
    retries_made: int = 0,
    throttles: int = 0,
) -> Delivery:
    """Make one attempt to send *said*; a fallback is sent once at most, whatever the notification asks for."""
    credential, address = candidate.way
    said = table.linked(said, notification, n, credential.channel)
    made = delivery_of(notification, n, credential, address, said, attempt, retries_made, throttles)
    return replace(made, guarantee=Guarantee.AT_MOST_ONCE) if candidate.is_fallback else made


def _wait(candidate: Candidate, before: Sequence[Candidate]) -> WaitsFor | None:
    """Return what *candidate* waits for, if there are such targets *before* it."""
    after = candidate.after
    if after is None:
        return None
    siblings = tuple([n for n, each in enumerate(before) if each.name in after.names])
    return WaitsFor(siblings, after.seconds, after.status) if siblings else None


def _plan_again(
    item: WorkItem, open_targets: Sequence[OpenTarget], recipient: Recipient, table: RoutingTable, now: Instant
) -> Plan:
    notification = item.notification
    routed = table.route(notification, recipient, now, [target.device_id for target in open_targets])
    by_name = {each.name: each for each in routed.targets}
    message = message_of(notification)
    deliveries: list[Delivery] = []
    changes: list[Change] = []
    for target in open_targets:
        found, attempt = by_name[target.device_id], target.attempt + 1
        decided = Expired() if is_expired(notification, attempt, now) else found.settlement
        if decided is None:
            said = table.rendered(message, found.way[1], recipient)
            if isinstance(said, Dead):
                changes.append(Change(target.n, attempt, said, now))
                continue
            tried = (attempt, target.retries, target.throttles)
            deliveries.append(_delivery(notification, found, target.n, said, table, *tried))
        else:
            changes.append(Change(target.n, attempt, decided, now))
    return Plan(item, tuple(deliveries), tuple(changes))


def held_back(plan: Plan, verdicts: Mapping[int, Suppressed | Parked], now: Instant) -> Plan:
    """Return *plan* without the deliveries of these targets, which end, or wait, by *verdicts*."""
    held = [each for each in plan.deliveries if each.n in verdicts]
    changes = tuple([Change(each.n, each.attempt, verdicts[each.n], now) for each in held])
    targets = plan.targets and tuple([_told(each, verdicts.get(each.n)) for each in plan.targets])
    going = tuple([each for each in plan.deliveries if each.n not in verdicts])
    return replace(plan, deliveries=going, changes=plan.changes + changes, targets=targets)


def _told(target: Target, verdict: Suppressed | Parked | None) -> Target:
    return replace(target, suppressed=verdict.reason) if isinstance(verdict, Suppressed) else target


def poisoned(item: WorkItem, now: Instant) -> Plan:
    """Bury an item that killed its worker three times when it was alone, as a dead letter."""
    return _buried(item, "poison", "processing it ended its worker three times", now)


def _buried(item: WorkItem, code: str, why: str, now: Instant) -> Plan:
    dead = Dead(code, why, FailureClass.TERMINAL, letter=True)
    if item.open_targets is None:
        to = item.notification.content.to
        target = Target(0, UNROUTED, None) if to is None else Target(0, name_of(to), to.channel)
        return Plan(item, changes=(Change(0, 1, dead, now),), targets=(target,))
    return Plan(item, changes=tuple(Change(each.n, each.attempt + 1, dead, now) for each in item.open_targets))
