"""The faults of a URL that are found before anything is posted to it."""

from __future__ import annotations

from typing import Final

from waypost.channels.push.endpoints import EndpointGuard, take_apart
from waypost.channels.webhook.settings import CHANNEL, WebhookSettings
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.device import Registration, RegistrationCheck, is_token_alone
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId

URL_LIMIT_BYTES: Final = 1_000
URL_KIND: Final = "url"
"""The kind of ``to`` that is one URL, in place of a user."""


def registration_check(app: AppId, settings: WebhookSettings | None) -> RegistrationCheck:
    """Build the check of one app; ConfigurationError names an entry of ``allow_endpoints`` that means nothing."""
    guard = None if settings is None else EndpointGuard(CredentialId(app, CHANNEL).section, settings.allow_endpoints)

    def faults(registration: Registration) -> list[Fault]:
        return is_token_alone(registration) + url_faults("token", registration.token, guard)

    return faults


def content_faults(content: Content, _kind: Kind) -> list[Fault]:
    """List the faults of the URLs that a submission itself names; the guard is asked when it is sent."""
    found: list[Fault] = []
    if content.to is not None and content.to.channel == CHANNEL:
        found += url_faults("to.name", content.to.name, None)
    if content.webhook_url is not None:
        found += url_faults("webhook_url", content.webhook_url, None)
    return found


def url_faults(path: str, url: str, guard: EndpointGuard | None) -> list[Fault]:
    """List what is wrong with *url*; *path* names it."""
    if len(url) > URL_LIMIT_BYTES or take_apart(url) is None:
        return [Fault(path, f"must be a plain https:// URL of at most {URL_LIMIT_BYTES} bytes")]
    if guard is not None and guard.admit(url) is None:
        return [Fault(path, "is not a URL that the app's settings allow")]
    return []
