"""Apple's broadcast channels as the command line uses them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from waypost.adapters.apns.channels import Channels, open_channels
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.runtime.clock import SystemClock


def apns_channels(config: Config, app: AppId) -> AbstractAsyncContextManager[Channels]:
    """The broadcast channels of *app*; ConfigurationError where it has no account at Apple's."""
    settings = config.apps[app].apns
    if settings is None:
        raise ConfigurationError(f"apps.{app}.apns", "is needed for broadcast channels")
    return open_channels(app, settings, SystemClock())
