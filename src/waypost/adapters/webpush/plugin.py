"""The channel ``webpush``: browsers."""

from __future__ import annotations

from typing import Final

from waypost.adapters.webpush.payload import faults
from waypost.adapters.webpush.registration import registration_check
from waypost.adapters.webpush.sender import WebPushSender
from waypost.adapters.webpush.settings import CHANNEL, WebPushSettings
from waypost.domain.device import Platform
from waypost.domain.ids import AppId
from waypost.ports.plugin import Means, SenderPlugin


def _build(app: AppId, settings: WebPushSettings, means: Means) -> WebPushSender:
    return WebPushSender(app, settings, clock=means.clock, telemetry=means.telemetry)


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="Web Push",
    platforms=(Platform("web"),),
    settings=WebPushSettings,
    build=_build,
    content_check=faults,
    registration_check=registration_check,
)
