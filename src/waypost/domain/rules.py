"""The rules of the core: which addresses there are, and which of them are not sent to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waypost.domain.address import name_of
from waypost.domain.channel import PUSH
from waypost.domain.device import Device
from waypost.domain.routing import NO_CREDENTIAL, Candidate, LeftOut, Question, Rule, Verdict, place_of
from waypost.domain.settlement import Suppressed

UNKNOWN_PLATFORM = "unknown_platform"
OTHER_USE = "other_token_use"
INACTIVE = "inactive"
NOT_CHOSEN = "not_chosen"
OTHER_CHANNEL = "other_channel"


def _addresses(question: Question, there: Sequence[Candidate]) -> Iterable[Candidate]:
    """List the addresses to judge: *there* if given, or the audience, or the user's devices and unknown names."""
    if there:
        return ()
    to = question.notification.content.to
    if to is not None:
        return (Candidate(name_of(to), to, to.channel),)
    channel_of = question.channels.get
    found = [Candidate(each.device_id, each, channel_of(each.platform)) for each in question.recipient.devices]
    if question.chosen:
        known = {each.name for each in found}
        found += [Candidate(name, None, None) for name in dict.fromkeys(question.chosen) if name not in known]
    return found


def _chosen(question: Question, candidate: Candidate) -> Verdict | None:
    return LeftOut(NOT_CHOSEN) if question.chosen and candidate.name not in question.chosen else None


def _active(question: Question, candidate: Candidate) -> Verdict | None:
    address = candidate.address
    if address is None:
        return Suppressed(question.missing)
    if not isinstance(address, Device) or address.active:
        return None
    return Suppressed(question.missing) if question.chosen else LeftOut(INACTIVE)


def _token_use(question: Question, candidate: Candidate) -> Verdict | None:
    """Suppress a token for another use (such as a live activity's) where it is named; leave it out otherwise."""
    address = candidate.address
    if not isinstance(address, Device) or address.token_use is question.token_use:
        return None
    return Suppressed(OTHER_USE) if question.chosen else LeftOut(OTHER_USE)


def _served(_: Question, candidate: Candidate) -> Verdict | None:
    return Suppressed(UNKNOWN_PLATFORM) if candidate.channel is None else None


def _asked_for(question: Question, candidate: Candidate) -> Verdict | None:
    """Leave out what is of no channel that was asked for; where none was, what was not named and is not of push."""
    channel, steps = candidate.channel, question.notification.content.channels
    if channel is None or not isinstance(candidate.address, Device):
        return None
    family = question.families.get(channel, PUSH)
    if not steps:
        return None if family == PUSH or candidate.name in question.chosen else LeftOut(OTHER_CHANNEL)
    if place_of(steps, channel, family) is not None:
        return None
    return Suppressed(OTHER_CHANNEL) if candidate.name in question.chosen else LeftOut(OTHER_CHANNEL)


def _credential(question: Question, candidate: Candidate) -> Verdict | None:
    """Choose the channel's default credential, where no other was picked."""
    if candidate.credential is not None:
        return None
    held = question.credentials.get(candidate.channel) if candidate.channel is not None else None
    return held[0] if held else Suppressed(NO_CREDENTIAL)


RULES = (
    Rule("addresses", add=_addresses),
    Rule("chosen", _chosen, concerns=lambda notification: bool(notification.device_ids)),
    Rule("active", _active, judges_alike=True),
    Rule("token_use", _token_use, judges_alike=True),
    Rule("platform", _served, judges_alike=True),
    Rule("channels", _asked_for, judges_alike=True),
    Rule("credential", _credential, judges_alike=True),
)
"""The rules of the core, in order."""


def with_rules(added: Iterable[Rule]) -> tuple[Rule, ...]:
    """Put the rules of plug-ins and features among the core's: before the one that chooses a credential."""
    return (*RULES[:-1], *added, RULES[-1])
