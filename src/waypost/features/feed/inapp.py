"""The settings of each app's feed, as the parts of the feature ask for them."""

from __future__ import annotations

from typing import Final

from waypost.channels.inapp.settings import CHANNEL, InappSettings
from waypost.config import Config
from waypost.domain.ids import AppId


def inapp_of(config: Config, app: AppId) -> InappSettings:
    """Return the settings of the feed of *app*; with everything off where it has none."""
    found = config.apps[app].senders.get(CHANNEL)
    return found if isinstance(found, InappSettings) else _NONE


def dismissing(config: Config) -> frozenset[AppId]:
    """Return the apps whose users' devices are told what was read elsewhere."""
    return frozenset(app for app in config.apps if inapp_of(config, app).dismiss)


_NONE: Final = InappSettings()
