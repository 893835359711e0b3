"""The faults of a subscription that are found before anything is sent to it."""

from __future__ import annotations

import re

from waypost.channels.push.encryption import InvalidKeys, public_key_of
from waypost.channels.push.endpoints import API_HOST, EndpointGuard, is_sender_api, take_apart
from waypost.channels.webpush.settings import CHANNEL, WebPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import Registration, RegistrationCheck, has_one_use
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId

_URL = re.compile(r"https?://[^/?#@\s]+(?:/[^#\s]*)?")


def registration_check(app: AppId, settings: WebPushSettings | None) -> RegistrationCheck:
    """Build the check of one app; ConfigurationError names an entry of ``allow_endpoints`` that means nothing."""
    guard = None if settings is None else EndpointGuard(CredentialId(app, CHANNEL).section, settings.allow_endpoints)

    def faults(registration: Registration) -> list[Fault]:
        found = has_one_use(registration)
        if not _URL.fullmatch(registration.token):
            why = "must be a URL, the endpoint of the subscription; a token of Firebase's SDK has the platform web_fcm"
            found.append(Fault("token", why))
        elif (endpoint := take_apart(registration.token)) is not None and is_sender_api(endpoint):
            found.append(Fault("token", API_HOST))
        elif guard is not None and guard.admit(registration.token) is None:
            found.append(Fault("token", "is not an endpoint that the app's settings allow"))
        if registration.keys is None:
            return [*found, Fault("keys", "a push subscription has keys; give them")]
        try:
            public_key_of(registration.keys)
        except InvalidKeys as error:
            found.append(Fault(f"keys.{error.key}", error.why))
        return found

    return faults
