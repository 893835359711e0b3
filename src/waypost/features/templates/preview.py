"""The preview of a version: what each platform would be sent, and how large that is. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.channels.inapp.settings import CHANNEL as INAPP
from waypost.domain.address import Address, Feed
from waypost.domain.channel import Channel
from waypost.domain.content import Content, TemplateUse
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import delivery_of
from waypost.domain.device import Device, Platform, SubscriptionKeys
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.message import message_of
from waypost.domain.notification import Lane, Notification
from waypost.domain.profile import Profile
from waypost.domain.settlement import Dead
from waypost.domain.template import TemplateContent, Version, entry_for
from waypost.domain.time import HOUR_MS, Instant, later
from waypost.features.parts import Ground
from waypost.features.templates.rendering import wording_of
from waypost.pipeline.explain import Explain
from waypost.ports.sender import Rendered

NOBODY: Final = UserId("preview")
_ENDPOINT: Final = "https://updates.push.services.mozilla.com/wpush/v2/preview"
_TOKENS: Final = {
    "ios": "0" * 64,
    "phone": "+15005550006",
    "email": "preview@example.com",
    "url": "https://example.com/preview",
}
"""An address that each platform could have; others have endpoints, or take any text."""


_KEY: Final = b"\x04" + bytes(64)
"""What has the shape of a browser's key: nothing is encrypted."""


class Shown(Struct, frozen=True):
    """One platform with what it would be sent."""

    platform: str
    channel: Channel
    said: Content | Dead
    """What the template says, or why it says nothing."""
    rendered: Rendered | None
    """The request; None where the app has no account there, or nothing is said."""


def examples(content: TemplateContent, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a preview: what is *given*, else examples."""
    named = {name: each.example for name, each in content.variables.items() if each.example is not None}
    return named | dict(given)


def shown(
    ground: Ground, explain: Explain, app: AppId, version: Version, use: TemplateUse, known: Profile
) -> list[Shown]:
    """Render *version* for each platform that it says something to, for a user of whom *known* is known."""
    now = ground.clock.now()
    notification = _notification(app, use, now)
    wording = wording_of(ground, app, use, version, known)
    made: list[Shown] = []
    for platform, channel, address in _addresses(ground, app, now):
        if entry_for(version.content, channel, ground.families.get(channel, channel)) is None:
            continue
        said = wording if isinstance(wording, Dead) else wording.to(message_of(notification), address)
        if isinstance(said, Dead):
            made.append(Shown(platform, channel, said, None))
            continue
        rendered = None
        credential = _account(explain, app, channel)
        if credential is not None:
            delivery = delivery_of(notification, 0, credential, address, said)
            rendered = explain.senders[credential].render(delivery)
        made.append(Shown(platform, channel, said.content, rendered))
    return made


def _account(explain: Explain, app: AppId, channel: Channel) -> CredentialId | None:
    accounts = explain.routing.credentials.get(app, {}).get(channel, ())
    return next((each for each in accounts if each in explain.senders), None)


def _addresses(ground: Ground, app: AppId, now: Instant) -> Iterator[tuple[str, Channel, Address]]:
    for platform, channel in sorted(ground.channels.items()):
        yield platform, channel, _device(app, platform, now)
    yield "feed", INAPP, Feed(NOBODY)


def _device(app: AppId, platform: Platform, now: Instant) -> Device:
    token = _TOKENS.get(platform, _ENDPOINT)
    device = Device(app, NOBODY, DeviceId("preview"), platform, token, now, now, now)
    return replace(device, keys=SubscriptionKeys(_KEY, bytes(16))) if token == _ENDPOINT else device


def _notification(app: AppId, use: TemplateUse, now: Instant) -> Notification:
    return Notification(
        id=NotificationId(bytes(16)),
        app=app,
        caller=CallerId("waypost:templates"),
        user_id=NOBODY,
        content=Content(template=use),
        created_at=now,
        expires_at=later(now, HOUR_MS),
        ttl_ms=HOUR_MS,
        lane=Lane.NORMAL,
    )
