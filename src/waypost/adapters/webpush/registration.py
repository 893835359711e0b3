"""What of a subscription can be found wrong before anything is sent to it."""

from __future__ import annotations

from waypost.adapters.webpush.encryption import InvalidKeys, public_key_of
from waypost.adapters.webpush.endpoints import EndpointGuard
from waypost.adapters.webpush.settings import WebPushSettings
from waypost.domain.device import Platform, Registration, RegistrationCheck
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId


def registration_check(app: AppId, settings: WebPushSettings) -> RegistrationCheck:
    """The check of one app; ConfigurationError names an entry of ``allow_endpoints`` that means nothing."""
    guard = EndpointGuard(app, settings.allow_endpoints)

    def faults(registration: Registration) -> list[Fault]:
        if registration.platform is not Platform.WEB:
            return []
        found = []
        if guard.admit(registration.token) is None:
            found.append(Fault("token", "is not an endpoint that the app's settings allow"))
        if registration.keys is not None:
            try:
                public_key_of(registration.keys)
            except InvalidKeys as error:
                found.append(Fault(f"keys.{error.key}", error.why))
        return found

    return faults
