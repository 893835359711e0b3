"""The channel ``fcm``: Android devices, and iOS and web apps with Firebase's SDK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from waypost.channels.fcm.payload import CONDITION, GROUP, TOPIC, faults
from waypost.channels.fcm.platforms import PLATFORMS
from waypost.channels.fcm.settings import CHANNEL, GOOGLE, TOKENS, FcmSettings
from waypost.domain.credential import CredentialId
from waypost.domain.drafting import KeysCheck
from waypost.domain.limits import TokenBucket
from waypost.ports.plugin import Gateway, Means, SenderPlugin

if TYPE_CHECKING:
    from waypost.channels.fcm.sender import FcmSender


def _build(credential: CredentialId, settings: FcmSettings, means: Means) -> FcmSender:
    from waypost.channels.fcm.sender import FcmSender

    return FcmSender(credential, settings, clock=means.clock, telemetry=means.telemetry, ahead=means.ahead)


QUOTA: Final = TokenBucket(600_000, 10_000.0, ramp_s=60.0)
"""What Google grants a project: 600,000 messages a minute, to be approached over a minute at the least.

https://firebase.google.com/docs/cloud-messaging/throttling-and-quotas and …/cloud-messaging/scale-fcm
"""


def _gateways(settings: FcmSettings) -> Sequence[Gateway]:
    urls = (GOOGLE, TOKENS) if settings.endpoint is None else (settings.endpoint,)
    return [Gateway(url=url, ca_file=settings.ca_file, proxy=settings.proxy) for url in urls]


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="FCM",
    platforms=PLATFORMS,
    settings=FcmSettings,
    build=_build,
    gateways=_gateways,
    content_check=KeysCheck(faults),
    broadcasts=(TOPIC, CONDITION, GROUP),
    rate=QUOTA,
)
