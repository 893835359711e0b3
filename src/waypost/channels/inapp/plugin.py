"""The channel ``inapp``: the feed that an app shows to its user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from waypost.channels.inapp.settings import CHANNEL, InappSettings
from waypost.domain.address import FEED, Feed
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.drafting import SpecialCheck
from waypost.domain.errors import Fault
from waypost.domain.routing import Candidate, Question, Rule, place_of
from waypost.ports.plugin import Means, SenderPlugin

if TYPE_CHECKING:
    from waypost.channels.inapp.sender import InappSender


def _build(credential: CredentialId, _settings: Any, _means: Means) -> InappSender:
    from waypost.channels.inapp.sender import InappSender

    return InappSender(credential)


def _content_faults(content: Content, kind: Kind) -> list[Fault]:
    if kind is Kind.SILENT and _names_feed(content.channels):
        return [Fault("channels", "a silent notification shows nothing: it is for no feed")]
    return []


def _feed(question: Question, there: Sequence[Candidate]) -> Iterable[Candidate]:
    """Add the feed of the user where the notification names it and the app has one."""
    notification = question.notification
    if not _names_feed(notification.content.channels) or CHANNEL not in question.credentials:
        return ()
    return (Candidate(FEED, Feed(notification.user_id), CHANNEL),)


def _names_feed(steps: Sequence[ChannelStep]) -> bool:
    return bool(steps) and place_of(steps, CHANNEL, CHANNEL) is not None


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="feed",
    platforms=(),
    settings=InappSettings,
    build=_build,
    content_check=SpecialCheck(_content_faults),
    rate=None,
    rules=(Rule("feed", add=_feed, concerns=lambda notification: bool(notification.content.channels)),),
    family=CHANNEL,
)
