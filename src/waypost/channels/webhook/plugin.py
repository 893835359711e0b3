"""The channel ``webhook``: messages to URLs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from waypost.channels.webhook.registration import URL_KIND, content_faults, registration_check
from waypost.channels.webhook.settings import CHANNEL, WebhookSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import URL
from waypost.domain.drafting import SpecialCheck
from waypost.ports.plugin import Gateway, Means, SenderPlugin

if TYPE_CHECKING:
    from waypost.channels.webhook.sender import WebhookSender


def _build(credential: CredentialId, settings: WebhookSettings, means: Means) -> WebhookSender:
    from waypost.channels.webhook.sender import WebhookSender

    return WebhookSender(credential, settings, clock=means.clock, telemetry=means.telemetry)


def _gateways(settings: WebhookSettings) -> Sequence[Gateway]:
    url = settings.status_url
    return [] if url is None else [Gateway(url=url, ca_file=settings.ca_file, proxy=settings.proxy, http2=False)]


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="webhook",
    platforms=(URL,),
    settings=WebhookSettings,
    build=_build,
    gateways=_gateways,
    content_check=SpecialCheck(content_faults),
    registration_check=registration_check,
    broadcasts=(URL_KIND,),
    rate=None,
    family=CHANNEL,
    own_fields=("webhook_url",),
)
