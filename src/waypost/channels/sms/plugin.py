"""The channel ``sms``: text messages to telephones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from waypost.channels.sms.payload import message_faults
from waypost.channels.sms.registration import canonical, registration_check
from waypost.channels.sms.settings import CHANNEL, TWILIO, SmsSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import PHONE
from waypost.domain.drafting import SpecialCheck
from waypost.domain.limits import FixedWindow, TokenBucket
from waypost.domain.time import DAY_MS
from waypost.ports.callbacks import CallbackRequest, TargetReport
from waypost.ports.plugin import Gateway, Means, SenderPlugin

PER_DAY: Final = 20
"""The most text messages to a number in a day where nobody says: who makes us send more makes us pay."""

if TYPE_CHECKING:
    from waypost.channels.sms.sender import SmsSender


def _build(credential: CredentialId, settings: SmsSettings, means: Means) -> SmsSender:
    from waypost.channels.sms.sender import SmsSender

    return SmsSender(credential, settings, clock=means.clock, telemetry=means.telemetry, public_url=means.public_url)


def _read_callback(settings: SmsSettings, request: CallbackRequest) -> Sequence[TargetReport]:
    from waypost.channels.sms.callbacks import reports
    from waypost.channels.sms.sender import read_secret

    return reports(read_secret(str(CHANNEL), "auth_token_file", settings.auth_token_file), request)


def _gateways(settings: SmsSettings) -> Sequence[Gateway]:
    return [Gateway(url=settings.endpoint or TWILIO, ca_file=settings.ca_file, http2=False)]


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="Twilio",
    platforms=(PHONE,),
    settings=SmsSettings,
    build=_build,
    gateways=_gateways,
    content_check=SpecialCheck(message_faults),
    registration_check=registration_check,
    canonical=canonical,
    family=str(CHANNEL),
    is_bound=False,
    rate=TokenBucket(100, 10.0),
    per_device=FixedWindow(PER_DAY, DAY_MS),
    callback=_read_callback,
)
