"""The channel as Waypost knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.ports.plugin import Means, SenderPlugin

from waypost_huawei.settings import CHANNEL, HuaweiSettings

if TYPE_CHECKING:
    from waypost.runtime.courier_sender import CourierSender


def _build(credential: CredentialId, settings: HuaweiSettings, means: Means) -> CourierSender:
    # Imported here: whoever reads a configuration needs the settings, not the sender.
    from waypost_huawei.courier import sender

    return sender(credential, settings, means)


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="Huawei Push Kit",
    platforms=(Platform("huawei"),),
    settings=HuaweiSettings,
    build=_build,
)
