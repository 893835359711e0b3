"""The faults of a registration that are found before anything is sent to it."""

from __future__ import annotations

from waypost.channels.push.encryption import InvalidKeys, public_key_of
from waypost.channels.push.endpoints import API_HOST, EndpointGuard, is_sender_api, take_apart
from waypost.channels.unifiedpush.settings import CHANNEL, UnifiedPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import Registration, RegistrationCheck, has_one_use
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId

ENDPOINT_LIMIT_BYTES = 1_000
"""The longest endpoint, bytes: both specifications have the same."""


def registration_check(app: AppId, settings: UnifiedPushSettings | None) -> RegistrationCheck:
    """Build the check of one app; ConfigurationError names an entry of ``allow_endpoints`` that means nothing."""
    guard = None if settings is None else EndpointGuard(CredentialId(app, CHANNEL).section, settings.allow_endpoints)
    needs_keys = settings is not None and not settings.plaintext

    def faults(registration: Registration) -> list[Fault]:
        return has_one_use(registration) + _endpoint_faults(registration.token, guard) + _key_faults(registration)

    def _key_faults(registration: Registration) -> list[Fault]:
        if registration.keys is None:
            return [Fault("keys", "give them: this app sends nothing that is not encrypted")] if needs_keys else []
        try:
            public_key_of(registration.keys)
        except InvalidKeys as error:
            return [Fault(f"keys.{error.key}", error.why)]
        return []

    return faults


def _endpoint_faults(endpoint: str, guard: EndpointGuard | None) -> list[Fault]:
    address = take_apart(endpoint)
    if address is None or len(endpoint) > ENDPOINT_LIMIT_BYTES:
        return [Fault("token", f"must be a URL of at most {ENDPOINT_LIMIT_BYTES} bytes")]
    if is_sender_api(address):
        return [Fault("token", API_HOST)]
    if guard is not None and guard.admit(endpoint) is None:
        return [Fault("token", "is not an endpoint that the app's settings allow")]
    return []
