"""Settings of an app's feed (``apps.<app>.inapp``)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from waypost.domain.channel import Channel

CHANNEL: Final = Channel("inapp")


class InappSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the feed: the section itself (`inapp: {}`) gives every user of the app a feed."""

    badge: bool = False
    """Pushes carry the number of unread entries as the badge of the app, where the caller gave none."""
    dismiss: bool = False
    """What is read, archived or deleted on one device is taken from the user's others, by a silent push."""
