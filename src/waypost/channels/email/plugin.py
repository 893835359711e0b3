"""The channel ``email``: people's mailboxes, by way of an SMTP server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from waypost.channels.email.content import content_faults
from waypost.channels.email.mailboxes import canonical, registration_check
from waypost.channels.email.settings import CHANNEL, PORTS, EmailSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import EMAIL
from waypost.domain.drafting import SpecialCheck
from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.ports.callbacks import CallbackRequest, ForgedCallback, TargetReport
from waypost.ports.plugin import Gateway, Means, SenderPlugin

if TYPE_CHECKING:
    from waypost.channels.email.sender import EmailSender


def _build(credential: CredentialId, settings: EmailSettings, means: Means) -> EmailSender:
    try:
        from waypost.channels.email.sender import EmailSender
    except ModuleNotFoundError as error:
        if error.name != "aiosmtplib":
            raise
        why = f"its client is not installed: {how_to_install('email')}"
        raise ConfigurationError(credential.section, why) from None
    return EmailSender(credential, settings, clock=means.clock, telemetry=means.telemetry)


def _read_callback(settings: EmailSettings, request: CallbackRequest) -> Sequence[TargetReport]:
    from waypost.channels.email.callbacks import reports
    from waypost.channels.push.secrets import read_line

    if settings.callback_password_file is None:
        raise ForgedCallback
    return reports(
        read_line(f"{CHANNEL}.callback_password_file", settings.callback_password_file), settings.provider, request
    )


def _gateways(settings: EmailSettings) -> Sequence[Gateway]:
    scheme = "https" if settings.security == "tls" else "smtp"
    url = f"{scheme}://{settings.host}:{settings.port or PORTS[settings.security]}"
    return [Gateway(url=url, ca_file=settings.ca_file, http2=False)]


PLUGIN: Final = SenderPlugin(
    channel=CHANNEL,
    title="E-mail",
    platforms=(EMAIL,),
    settings=EmailSettings,
    build=_build,
    gateways=_gateways,
    content_check=SpecialCheck(content_faults),
    registration_check=registration_check,
    family="email",
    is_bound=False,
    canonical=canonical,
    callback=_read_callback,
)
