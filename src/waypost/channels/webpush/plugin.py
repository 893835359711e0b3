"""The channel ``webpush``: browsers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from waypost.channels.push.message import message_faults
from waypost.channels.webpush.registration import registration_check
from waypost.channels.webpush.settings import CHANNEL, WebPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.domain.drafting import SpecialCheck
from waypost.ports.plugin import Means, SenderPlugin

if TYPE_CHECKING:
    from waypost.channels.webpush.sender import WebPushSender


def _build(credential: CredentialId, settings: WebPushSettings, means: Means) -> WebPushSender:
    from waypost.channels.webpush.sender import WebPushSender

    return WebPushSender(credential, settings, clock=means.clock, telemetry=means.telemetry)


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="Web Push",
    platforms=(Platform("web"),),
    settings=WebPushSettings,
    build=_build,
    content_check=SpecialCheck(partial(message_faults, channel=CHANNEL)),
    registration_check=registration_check,
    rate=None,
)
