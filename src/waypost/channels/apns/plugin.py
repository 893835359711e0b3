"""The channel ``apns``: iOS devices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from waypost.channels.apns.payload import CHANNEL_KIND, faults
from waypost.channels.apns.settings import HOSTS, ApnsSettings
from waypost.domain.channel import APNS
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform, Registration, RegistrationCheck, has_no_keys
from waypost.domain.drafting import KeysCheck
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId
from waypost.ports.plugin import Gateway, Means, SenderPlugin

if TYPE_CHECKING:
    from waypost.channels.apns.sender import ApnsSender

_TOKEN = re.compile(r"(?:[0-9A-Fa-f]{2}){16,100}")


def _build(credential: CredentialId, settings: ApnsSettings, means: Means) -> ApnsSender:
    from waypost.channels.apns.sender import ApnsSender
    from waypost.channels.apns.tally import Tally

    shared = (
        None
        if means.shared_dir is None
        else means.shared_dir / f"unknown-tokens.{credential.app}{credential.name and '.'}{credential.name}"
    )
    return ApnsSender(
        credential,
        settings,
        clock=means.clock,
        telemetry=means.telemetry,
        tally=lambda: Tally(shared, means.slot, means.clock),
        ahead=means.ahead,
    )


def _registration_check(_app: AppId, _settings: ApnsSettings | None) -> RegistrationCheck:
    return _faults_of


def _faults_of(registration: Registration) -> list[Fault]:
    """Check that a token fits into a URL."""
    why = "must be 16 to 100 bytes in hex; a token of Firebase's SDK has the platform ios_fcm"
    bad_token = [] if _TOKEN.fullmatch(registration.token) else [Fault("token", why)]
    return bad_token + has_no_keys(registration)


def _gateways(settings: ApnsSettings) -> Sequence[Gateway]:
    url = settings.endpoint or HOSTS[settings.environment]
    return [Gateway(url=url, ca_file=settings.ca_file, proxy=settings.proxy)]


PLUGIN: Final = SenderPlugin(
    channel=APNS,
    title="APNs",
    platforms=(Platform("ios"),),
    settings=ApnsSettings,
    build=_build,
    gateways=_gateways,
    content_check=KeysCheck(faults),
    registration_check=_registration_check,
    broadcasts=(CHANNEL_KIND,),
    own_fields=("push_type",),
    rate=None,
)
