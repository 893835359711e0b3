"""The senders of each app, and what their channels refuse at intake."""

from __future__ import annotations

from waypost.adapters.apns.payload import faults as apns_faults
from waypost.adapters.apns.sender import ApnsSender
from waypost.adapters.fcm.payload import faults as fcm_faults
from waypost.adapters.fcm.sender import FcmSender
from waypost.adapters.webpush.payload import faults as webpush_faults
from waypost.adapters.webpush.registration import registration_check
from waypost.adapters.webpush.sender import WebPushSender
from waypost.config import AppSettings, Config
from waypost.domain.device import RegistrationCheck
from waypost.domain.errors import ConfigurationError, Fault
from waypost.domain.ids import AppId, CredentialId
from waypost.domain.notification import Content, Kind
from waypost.domain.submission import ContentCheck
from waypost.ports.clock import Clock
from waypost.ports.sender import Sender
from waypost.runtime.clock import SystemClock
from waypost.telemetry import Silent, Telemetry


async def try_credentials(config: Config) -> dict[CredentialId, str | None]:
    """Read every credential as a worker does, and say of each what is wrong with it; nothing is sent."""
    found: dict[CredentialId, str | None] = {}
    for name, sender in senders_of(config, SystemClock(), Silent()).items():
        found[name] = None
        try:
            await sender.start()
        except ConfigurationError as wrong:
            found[name] = str(wrong)
        finally:
            await sender.stop(0.0)
    return found


def senders_of(config: Config, clock: Clock, telemetry: Telemetry) -> dict[CredentialId, Sender]:
    """One sender a credential, not yet started."""
    found: list[Sender] = []
    for app, chosen in config.apps.items():
        if chosen.apns is not None:
            found.append(ApnsSender(app, chosen.apns, clock=clock, telemetry=telemetry))
        if chosen.fcm is not None:
            found.append(FcmSender(app, chosen.fcm, clock=clock, telemetry=telemetry))
        if chosen.webpush is not None:
            found.append(WebPushSender(app, chosen.webpush, clock=clock, telemetry=telemetry))
    return {sender.credential: sender for sender in found}


def content_checks(app: AppSettings) -> list[ContentCheck]:
    """What the channels of an app could never send."""
    offered = ((app.apns, apns_faults), (app.fcm, fcm_faults), (app.webpush, webpush_faults))
    checks: list[ContentCheck] = [check for credential, check in offered if credential is not None]
    return checks if app.apns is not None else [*checks, _for_apple_alone]


def registration_checks(name: AppId, app: AppSettings) -> list[RegistrationCheck]:
    """What the channels of an app could never send to."""
    return [] if app.webpush is None else [registration_check(name, app.webpush)]


def _for_apple_alone(content: Content, _: Kind) -> list[Fault]:
    return [Fault("push_type", "the app has no APNs account")] if content.push_type is not None else []
