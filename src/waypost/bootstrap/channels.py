"""Apple's broadcast channels as the command line uses them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from waypost.adapters.apns.channels import Channels, open_channels
from waypost.adapters.apns.settings import ApnsSettings
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.notification import APNS
from waypost.runtime.clock import SystemClock


def apns_channels(config: Config, app: AppId) -> AbstractAsyncContextManager[Channels]:
    """The broadcast channels of *app*; ConfigurationError where it has no account at Apple's."""
    settings = config.apps[app].senders.get(APNS)
    if not isinstance(settings, ApnsSettings):
        raise ConfigurationError(f"apps.{app}.apns", "is needed for broadcast channels")
    return open_channels(app, settings, SystemClock())
