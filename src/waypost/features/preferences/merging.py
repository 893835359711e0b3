"""Merging: what would have come by night is one message in the morning, which each of them is recorded with.

A notification is merged when it is about to be sent: its words go into the digest's rows, the digest is accepted, due
a moment after the quiet hours end, and the notification is suppressed with the digest's id. Whoever dies in between
leaves rows that the next one finds: the same again is in the digest once. What it says is read when it is sent, without
what the user has turned off since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from zoneinfo import ZoneInfo

from waypost.channels.inapp.settings import CHANNEL as FEED
from waypost.config import AppSettings
from waypost.domain.channel import PUSH
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Content
from waypost.domain.delivery import Delivery
from waypost.domain.ids import CallerId, NotificationId, format_id
from waypost.domain.notification import Lane, Notification
from waypost.domain.preferences import ORDINARY, Language, Preferences, settings_of, wants
from waypost.domain.profile import NOBODY
from waypost.domain.quiet_hours import quiet_until
from waypost.domain.recipient import Recipient
from waypost.domain.settlement import Suppressed
from waypost.domain.time import DAY_MS, MINUTE_MS, Instant, later
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import FEATURE, MERGED, MERGED_BEFORE_MS, DigestWords, Facts, may_be_second
from waypost.pipeline.route import Plan, held_back
from waypost.ports.work import NewNotification, Unwritten
from waypost.runtime.clock import RandomIds
from waypost.stores.sql.digests import Member, Merging
from waypost.stores.sql.preferences import Said

CALLER: Final = CallerId("waypost:digest")
"""The caller of digests."""
_AFTER_MS: Final = MINUTE_MS
"""Milliseconds after the end of quiet hours at which a digest is due: all of its rows are there by then."""
_TTL_MS: Final = DAY_MS
_LONGEST: Final = 200
"""Characters of a title that are kept for the list."""
_COUNT: Final = "{count}"
_TITLE: Final = "{count} messages"
_UNCOUNTED: Final = "New messages"
"""The title of a digest where preferences are no longer used when it is due, and nobody counts what is in it."""


async def merge(ground: Ground, plans: Sequence[Plan], found: Mapping[NotificationId, Recipient]) -> Sequence[Plan]:
    """Put what of *plans* comes by night into its digest, in one transaction."""
    now = ground.clock.now()
    plans = await _without_merged(ground, plans, found, now)
    asked = [(n, each, until) for n, plan in enumerate(plans) for each, until in _by_night(plan, found, now)]
    if not asked:
        return plans
    new_ids = RandomIds(ground.clock).next(len(asked))
    merging = [
        _merging(ground, plans[n].item.notification, each, until, new_id, now)
        for (n, each, until), new_id in zip(asked, new_ids, strict=True)
    ]
    digests = await ground.store.digests.merge(merging)
    await _accept(ground, dict(zip(digests, merging, strict=True)), now)
    held: dict[int, dict[int, Suppressed]] = {}
    for (n, each, _), digest in zip(asked, digests, strict=True):
        held.setdefault(n, {})[each.n] = _merged_into(digest)
    return [held_back(plan, held[n], now) if n in held else plan for n, plan in enumerate(plans)]


async def _without_merged(
    ground: Ground, plans: Sequence[Plan], found: Mapping[NotificationId, Recipient], now: Instant
) -> Sequence[Plan]:
    """Hold back what whoever died had put into a digest: it was leased again, when nothing is merged any more."""
    old = [plan.item.notification.id for plan in plans if plan.deliveries and _may_be_merged(plan, found, now)]
    digests = await ground.store.digests.digests_of(old) if old else {}
    if not digests:
        return plans
    return [held_back(plan, _held_by(plan, digests, ground), now) for plan in plans]


def _held_by(
    plan: Plan, digests: Mapping[tuple[NotificationId, str], NotificationId], ground: Ground
) -> dict[int, Suppressed]:
    id_ = plan.item.notification.id
    channels = {each.n: ground.families.get(each.channel, PUSH) for each in plan.deliveries if each.channel != FEED}
    return {n: _merged_into(digests[id_, to]) for n, to in channels.items() if (id_, to) in digests}


def _merged_into(digest: NotificationId) -> Suppressed:
    return Suppressed(f"{MERGED} into {format_id(digest)}")


def _may_be_merged(plan: Plan, found: Mapping[NotificationId, Recipient], now: Instant) -> bool:
    """Tell whether its words may be in a digest."""
    notification = plan.item.notification
    known: Facts | None = found[notification.id].facts.get(FEATURE)
    return known is not None and known.settings.quiet_hours == "merge" and may_be_second(notification, now)


def _by_night(
    plan: Plan, found: Mapping[NotificationId, Recipient], now: Instant
) -> Iterator[tuple[Delivery, Instant]]:
    """Yield the deliveries that are merged, with the end of the night."""
    if not plan.deliveries:
        return
    known: Facts | None = found[plan.item.notification.id].facts.get(FEATURE)
    if known is None or known.hours is None or known.settings.quiet_hours != "merge":
        return
    until = quiet_until(known.hours, known.zone, now)
    if until is None or until - now <= MERGED_BEFORE_MS:
        return
    yield from ((each, until) for each in plan.deliveries if each.channel != FEED)


def _merging(
    ground: Ground, notification: Notification, delivery: Delivery, until: Instant, new_id: NotificationId, now: Instant
) -> Merging:
    content = delivery.message.content  # as it would have been said, by a template too
    title = content.title or content.body or ""
    channel = ground.families.get(delivery.channel, PUSH)
    due_at = later(until, _AFTER_MS)
    who = notification.app, notification.user_id, channel, due_at, new_id, notification.id
    body = (content.body or "") if content.title else ""
    return Merging(*who, content.type, title[:_LONGEST], body, now)


async def _accept(ground: Ground, digests: Mapping[NotificationId, Merging], now: Instant) -> None:
    """Accept digests; one that was accepted before is not again."""
    made = [NewNotification(_notification(id_, each, now)) for id_, each in digests.items()]
    for answer in await ground.work.accept(made):
        if isinstance(answer, Unwritten):
            raise answer.error


def _notification(id_: NotificationId, of: Merging, now: Instant) -> Notification:
    return Notification(
        id=id_,
        app=of.app,
        caller=CALLER,
        user_id=of.user_id,
        content=Content(title=_UNCOUNTED, channels=() if of.channel == PUSH else (ChannelStep(of.channel),)),
        created_at=now,
        expires_at=later(of.due_at, _TTL_MS),
        ttl_ms=_TTL_MS,
        lane=Lane.NORMAL,
        scheduled_at=of.due_at,
    )


async def digest_facts(ground: Ground, digests: Sequence[Notification]) -> Mapping[NotificationId, Facts]:
    """Read what decides about *digests*, and what they say, each in the language of its user."""
    members = await ground.store.digests.members([each.id for each in digests])
    found: dict[NotificationId, Facts] = {}
    for app in {each.app for each in digests}:
        of_app = [each for each in digests if each.app == app]
        users = [each.user_id for each in of_app]
        said = await ground.store.preferences.of(app, users)
        profiles = await ground.store.profiles.of(app, users)
        for each in of_app:
            wanted = said.get(each.user_id, Said()).preferences
            kept = _still_wanted(members.get(each.id, ()), wanted, ground.config.apps[app], each)
            words = _words(kept, ground.config.apps[app], profiles.get(each.user_id, NOBODY).locale)
            found[each.id] = Facts(wanted, None, ORDINARY, _UTC, None, digest=words)
    return found


def _still_wanted(members: Sequence[Member], said: Preferences, app: AppSettings, digest: Notification) -> list[Member]:
    """Leave out what the user has turned off since."""
    channel = digest.content.channels[0].to if digest.content.channels else PUSH
    return [
        each
        for each in members
        if wants(said, each.kind, settings_of(app.types, each.kind, is_critical=False), channel)
    ]


def _words(members: Sequence[Member], app: AppSettings, locale: str | None) -> DigestWords:
    if not members:
        return DigestWords("", "")
    if len(members) == 1:
        return DigestWords(members[0].title, members[0].body)
    settings = app.preferences.digest
    wanted = [Language(each) for each in (locale or "", (locale or "").partition("-")[0], "en")]
    title = next((settings.titles[each] for each in wanted if each in settings.titles), _TITLE)
    lines = [each.title for each in members[: settings.lines]]
    if len(members) > len(lines):
        lines.append(f"+ {len(members) - len(lines)}")
    return DigestWords(title.replace(_COUNT, str(len(members))), "\n".join(lines))


_UTC: Final = ZoneInfo("UTC")
