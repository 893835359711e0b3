"""The channel ``unifiedpush``: Android devices, and others, whose users chose a push server of their own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from waypost.channels.push.message import message_faults
from waypost.channels.unifiedpush.registration import registration_check
from waypost.channels.unifiedpush.settings import CHANNEL, UnifiedPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.domain.drafting import SpecialCheck
from waypost.ports.plugin import Means, SenderPlugin

if TYPE_CHECKING:
    from waypost.channels.unifiedpush.sender import UnifiedPushSender


def _build(credential: CredentialId, settings: UnifiedPushSettings, means: Means) -> UnifiedPushSender:
    from waypost.channels.unifiedpush.sender import UnifiedPushSender

    return UnifiedPushSender(credential, settings, clock=means.clock, telemetry=means.telemetry)


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="UnifiedPush",
    platforms=(Platform("unifiedpush"),),
    settings=UnifiedPushSettings,
    build=_build,
    content_check=SpecialCheck(partial(message_faults, channel=CHANNEL)),
    registration_check=registration_check,
    rate=None,
)
