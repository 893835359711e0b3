"""Broadcasts that providers fan out, as the command line manages them: Apple's broadcast channels, FCM's topics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from waypost.channels.apns.channels import BroadcastChannels, open_channels
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.device_groups import DeviceGroups
from waypost.channels.fcm.settings import CHANNEL, FcmSettings
from waypost.channels.fcm.topics import TopicMembers
from waypost.config import Config
from waypost.domain.channel import APNS
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.runtime.clock import SystemClock


def apns_channels(config: Config, app: AppId) -> AbstractAsyncContextManager[BroadcastChannels]:
    """Open the broadcast channels of *app*; ConfigurationError where it has no account at Apple's."""
    settings = config.apps[app].senders.get(APNS)
    if not isinstance(settings, ApnsSettings):
        raise ConfigurationError(CredentialId(app, APNS).section, "is needed for broadcast channels")
    return open_channels(app, settings, SystemClock())


@asynccontextmanager
async def fcm_topics(config: Config, app: AppId) -> AsyncIterator[TopicMembers]:
    """Open the topics of *app*; ConfigurationError where it has no account at Google's, or one that cannot be used."""
    topics = TopicMembers(app, _settings_of(config, app, "topics"), clock=SystemClock())
    try:
        await topics.start()
        yield topics
    finally:
        await topics.stop()


@asynccontextmanager
async def fcm_groups(config: Config, app: AppId, sender_id: str) -> AsyncIterator[DeviceGroups]:
    """Open the device groups of *app*; ConfigurationError as for its topics."""
    groups = DeviceGroups(app, _settings_of(config, app, "device groups"), sender_id, clock=SystemClock())
    try:
        await groups.start()
        yield groups
    finally:
        await groups.stop()


def _settings_of(config: Config, app: AppId, what_for: str) -> FcmSettings:
    settings = config.apps[app].senders.get(CHANNEL)
    if not isinstance(settings, FcmSettings):
        raise ConfigurationError(CredentialId(app, CHANNEL).section, f"is needed for {what_for}")
    return settings
