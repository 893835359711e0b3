"""Deciding: what a user does not want is not sent, and what would come in quiet hours waits for their end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from waypost.channels.inapp.settings import CHANNEL as FEED
from waypost.config import AppSettings, Config
from waypost.domain.address import Address
from waypost.domain.capping import NO_CAP, Capped, Claim, Verdicts, caps_of
from waypost.domain.channel import PUSH
from waypost.domain.content import Kind, Urgency
from waypost.domain.device import EMAIL, Device
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId
from waypost.domain.message import Message
from waypost.domain.notification import Notification
from waypost.domain.preference_link import LinkedUser, PreferenceLinks
from waypost.domain.preferences import NOTHING_SAID, Preferences, PreferenceSettings, TypeSettings, settings_of, wants
from waypost.domain.profile import zone_of
from waypost.domain.quiet_hours import Hours, quiet_until
from waypost.domain.recipient import Recipient
from waypost.domain.routing import Candidate, Deferred, Noted, Question, Rule, Verdict
from waypost.domain.settlement import Suppressed
from waypost.domain.time import MINUTE_MS, Instant
from waypost.features.parts import Ground
from waypost.features.preferences.knowing import Known, KnownUsers
from waypost.features.preferences.settings import links_of

FEATURE: Final = "preferences"
PREFERENCE: Final = "preference"
MAIL: Final = "email"
QUIET_HOURS: Final = "quiet_hours"
MERGED: Final = "merged"
MERGED_BEFORE_MS: Final = MINUTE_MS
"""Milliseconds before the end of quiet hours in which nothing is merged: a digest is whole when it is read."""
FREQUENCY_LIMIT: Final = "frequency_limit"
DEGRADED: Final = "degraded"
"""The reason of what is over a cap and found in the feed instead."""
DEGRADED_CALLER: Final = CallerId("waypost:degraded")
"""The caller of the copy in the feed; what its user wants of the feed counts for it."""
OURS: Final = "waypost:"
"""The beginning of the caller's name where Waypost itself sends: no API key has a colon in its name."""


class DigestWords(Struct, frozen=True):
    """The words of a digest; its title is empty where nothing of it is wanted any more."""

    title: str
    body: str


class Facts(Struct, frozen=True):
    """The facts that decide about one notification."""

    said: Preferences
    kind: str | None
    settings: TypeSettings
    zone: ZoneInfo
    hours: Hours | None
    """The quiet hours that hold for it."""
    unknown_zone: str | None = None
    """The name of the user's time zone, where this machine does not know it."""
    capped: Capped | None = None
    """The caps that count it."""
    full: Verdicts = NO_CAP
    """The caps that are reached, as far as they were looked at: ``capping.claims`` finds out when it is sent."""
    links: PreferenceLinks | None = None
    """The maker of the links by which readers of e-mails unsubscribe."""
    is_sent: bool = True
    """Whether it is to be sent; else somebody only asks."""
    digest: DigestWords | None = None
    """Its words, where it is a digest."""


def may_be_second(notification: Notification, now: Instant) -> bool:
    """Tell whether somebody may have begun to send this and died: it was due a minute ago.

    What they put into a digest or a feed is looked for then alone; nothing is merged in the minute before the end of
    quiet hours, so that what is merged is never younger when it may be sent.
    """
    return now - (notification.scheduled_at or notification.created_at) >= MERGED_BEFORE_MS


def is_declared(config: Config) -> bool:
    """Tell whether any app says anything of types or preferences."""
    return any(_has(app) for app in config.apps.values())


async def decide(ground: Ground, notifications: Sequence[Notification]) -> Sequence[Facts | None]:
    """Read what decides about each of *notifications*; None where nothing does."""
    apps = ground.config.apps
    users = [(each.app, each.user_id) if _is_meant(each, apps[each.app]) else None for each in notifications]
    meant = dict.fromkeys(user for user in users if user is not None)
    if not meant:
        return [None] * len(notifications)
    memory, links = {} if ground.memory is None else ground.memory, links_of(ground.config)
    known = await memory.setdefault(KnownUsers, KnownUsers()).of(ground, meant)
    found = [
        None if user is None else _facts(each, apps[each.app], known[user], links)
        for each, user in zip(notifications, users, strict=True)
    ]
    return found if ground.memory is not None else await _looked(ground, notifications, found)


def _named(notification: Notification) -> tuple[AppId, UserId, NotificationId]:
    return notification.app, notification.user_id, notification.id


async def _looked(
    ground: Ground, notifications: Sequence[Notification], found: Sequence[Facts | None]
) -> list[Facts | None]:
    """Look at the caps of what is only asked about: nothing of it is sent, or counted."""
    now, channels = ground.clock.now(), frozenset(str(each) for each in ground.families.values())
    looked: list[Facts | None] = []
    for each, sent in zip(notifications, found, strict=True):
        known = sent and replace(sent, is_sent=False)
        claim = None if known is None or known.capped is None else Claim(*_named(each), known.capped, channels, now)
        if known is None or claim is None or not claim.is_asked:
            looked.append(known)
            continue
        (full,) = await ground.store.frequency.look([claim])
        looked.append(replace(known, full=full))
    return looked


def _is_meant(notification: Notification, app: AppSettings) -> bool:
    """Tell whether preferences count: a user is told something, and not by Waypost itself."""
    content = notification.content
    is_shown = content.to is None and notification.kind is Kind.VISIBLE
    is_ours = notification.caller.startswith(OURS) and notification.caller != DEGRADED_CALLER
    return is_shown and not is_ours and _has(app)


def _has(app: AppSettings) -> bool:
    return bool(app.types) or app.preferences != _UNSET


_UNSET: Final = PreferenceSettings()


def _facts(notification: Notification, app: AppSettings, known: Known, links: PreferenceLinks | None) -> Facts | None:
    kind = notification.content.type
    settings = settings_of(app.types, kind, is_critical=notification.urgency is Urgency.CRITICAL)
    hours = None if _passes(settings) else known.said.quiet_hours or app.preferences.quiet_hours
    capped = caps_of(app.preferences, settings, kind, known.said)
    links = links if not settings.critical and _may_be_mail(notification) else None
    if (
        hours is None
        and capped is None
        and links is None
        and known.said is NOTHING_SAID
        and settings.enabled
        and not settings.channels
    ):
        return None
    zone = _zone(known.time_zone, app.time_zone)
    unknown = known.time_zone if known.time_zone not in (None, zone.key) else None
    if capped is not None:
        capped = replace(capped, zone=zone)
    return Facts(known.said, kind, settings, zone, hours, unknown, capped, NO_CAP, links)


def _may_be_mail(notification: Notification) -> bool:
    """Tell whether a mailbox may be among the targets: it is named, by its channel or as a device."""
    return bool(notification.device_ids) or any(step.to == MAIL for step in notification.content.channels)


def render(message: Message, address: Address, recipient: Recipient) -> Message:
    """Put in the words of a digest, and for a mailbox the address at which its reader unsubscribes from this type."""
    known: Facts | None = recipient.facts.get(FEATURE)
    if known is None:
        return message
    if known.digest is not None:
        said = replace(message.content, title=known.digest.title, body=known.digest.body or None)
        return replace(message, content=said)
    if known.links is None or not isinstance(address, Device) or address.platform != EMAIL:
        return message
    link = LinkedUser(address.user_id, known.kind or "", MAIL)
    return replace(message, unsubscribe=known.links.url(address.app, link))


def _passes(settings: TypeSettings) -> bool:
    mode = settings.quiet_hours
    return mode == "pass" or (mode is None and settings.critical)


@lru_cache(maxsize=1_024)
def _zone(own: str | None, of_app: str | None) -> ZoneInfo:
    return zone_of(own, of_app)


def _preference(question: Question, candidate: Candidate) -> Verdict | None:
    """Suppress what the user does not want by this channel; of a critical type, say that it passes."""
    known: Facts | None = question.recipient.facts.get(FEATURE)
    channel = candidate.channel
    if known is None or channel is None:
        return None
    is_empty = known.digest is not None and not known.digest.title
    if not is_empty and wants(known.said, known.kind, known.settings, question.families.get(channel, PUSH)):
        return None
    return Noted("turned off, but critical") if known.settings.critical else Suppressed(PREFERENCE)


def _time_zone(question: Question, _: Candidate) -> Verdict | None:
    """Say that the app's time zone counts, where the user's is unknown."""
    known: Facts | None = question.recipient.facts.get(FEATURE)
    if known is None or known.unknown_zone is None:
        return None
    return Noted(f"{known.unknown_zone} is unknown here: {known.zone.key} counts")


def _quiet_hours(question: Question, candidate: Candidate) -> Verdict | None:
    """Put off, or suppress, what would come in the user's quiet hours; a feed makes no noise."""
    known: Facts | None = question.recipient.facts.get(FEATURE)
    if known is None or known.hours is None or candidate.channel == FEED:
        return None
    until = quiet_until(known.hours, known.zone, question.now)
    if until is None:
        return None
    mode = known.settings.quiet_hours
    if mode == "merge" and until - question.now > MERGED_BEFORE_MS:
        return None if known.is_sent else Suppressed(MERGED)  # its digest is found when it is claimed
    return Suppressed(QUIET_HOURS) if mode == "skip" else Deferred(until)


def _frequency_limit(question: Question, candidate: Candidate) -> Verdict | None:
    """Hold back what is known to be more than a cap allows; a feed disturbs nobody."""
    known: Facts | None = question.recipient.facts.get(FEATURE)
    if known is None or known.full is NO_CAP or candidate.channel in (None, FEED):
        return None
    full = known.full.of(question.families.get(candidate.channel, PUSH))
    if full is None:
        return None
    if full.until is not None:
        return Deferred(full.until)
    return Suppressed(DEGRADED if full.degrades else FREQUENCY_LIMIT)


RULES: Final = (
    Rule(PREFERENCE, _preference),
    Rule("time_zone", _time_zone),
    Rule(QUIET_HOURS, _quiet_hours),
    Rule(FREQUENCY_LIMIT, _frequency_limit),
)
