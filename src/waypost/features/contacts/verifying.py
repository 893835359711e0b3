"""Verifying: an address gets nothing but its code until somebody has shown that it arrived."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.config.settings import ContactSettings
from waypost.domain.address import Address
from waypost.domain.contact_code import NONCE_BYTES, LinkedCode, PendingCode, code_of, counted_as, link_token
from waypost.domain.content import Content, Urgency
from waypost.domain.device import Device
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId
from waypost.domain.message import Message
from waypost.domain.notification import Lane, Notification
from waypost.domain.recipient import Recipient
from waypost.domain.routing import Candidate, Question, Rule, Verdict
from waypost.domain.settlement import Suppressed
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.features.contacts.settings import CODE, LINK, MINUTES, secret_of
from waypost.features.parts import Ground
from waypost.ports.work import NewNotification
from waypost.stores.sql.contact_proofs import Asked, Contact, ContactFacts

FEATURE: Final = "contacts"
CALLER: Final = CallerId("waypost:contacts")
"""The caller of the notifications that carry codes: no key has a colon in its name."""
UNVERIFIED: Final = "unverified"
NO_CODE: Final = "no_code"
_MINUTE_S: Final = 60


class Words(Struct, frozen=True):
    """The words that stand for the code of one address."""

    code: str
    link: str
    minutes: str

    def put_into(self, text: str | None) -> str | None:
        """Replace the placeholders in *text*."""
        if text is None:
            return None
        return text.replace(CODE, self.code).replace(LINK, self.link).replace(MINUTES, self.minutes)


class Proofs(Struct, frozen=True):
    """The knowledge of rule and renderer of a user whose app has contacts verified."""

    kinds: Sequence[str]
    """The kinds of contacts that are to be verified."""
    verified: frozenset[bytes]
    """The hashes of the addresses that are."""
    words: Mapping[bytes, Words]
    """The words for the codes on their way, by the hash of the address."""


async def facts(ground: Ground, notifications: Sequence[Notification]) -> Sequence[Proofs | None]:
    """Read the proofs of users whose app has contacts verified; None for those of the others."""
    users = [(each.app, each.user_id) for each in notifications]
    apps = {app for app, _ in users if ground.config.apps[app].contacts.verify}
    found: dict[AppId, dict[UserId, ContactFacts]] = {}
    for app in apps:
        asked = sorted({user for of, user in users if of == app})
        found[app] = await ground.store.contact_proofs.of(app, asked, ground.clock.now())
    return [_proofs(ground, app, user, found[app].get(user)) if app in apps else None for app, user in users]


def _proofs(ground: Ground, app: AppId, user: UserId, known: ContactFacts | None) -> Proofs:
    settings = ground.config.apps[app].contacts
    if known is None:
        return Proofs(settings.verify, frozenset(), {})
    words = {each.address: _words(ground, app, user, settings, each) for each in known.pending}
    return Proofs(settings.verify, known.verified, words)


def _words(ground: Ground, app: AppId, user: UserId, settings: ContactSettings, pending: PendingCode) -> Words:
    secret = secret_of(ground.settings)
    token = link_token(secret, app, LinkedCode(user, pending.nonce))
    link = f"{ground.config.rest.public_url}/v/{app}/{token}"
    return Words(code_of(secret, pending), link, str(settings.code_s // _MINUTE_S))


def _judge(question: Question, candidate: Candidate) -> Verdict | None:
    """Suppress what goes to an address that nobody has proved, but for its code."""
    known: Proofs | None = question.recipient.facts.get(FEATURE)
    address = candidate.address
    if known is None or not isinstance(address, Device) or address.platform not in known.kinds:
        return None
    if question.notification.caller == CALLER:
        return None if address.token_hash in known.words else Suppressed(NO_CODE)
    return None if address.token_hash in known.verified else Suppressed(UNVERIFIED)


RULE: Final = Rule("contacts", _judge)


def render(message: Message, address: Address, recipient: Recipient) -> Message:
    """Put the code into the message of an address that one is on its way to: no other message goes there."""
    known: Proofs | None = recipient.facts.get(FEATURE)
    words = known.words.get(address.token_hash) if known is not None and isinstance(address, Device) else None
    if words is None:
        return message
    content = message.content
    said = replace(content, title=words.put_into(content.title), body=words.put_into(content.body))
    return replace(message, content=said)


async def send_code(ground: Ground, device: Device, new_id: NotificationId) -> bool:
    """Send a new code to *device*, the one before is worth nothing then; False where it got too many in this hour.

    What is stored of the notification says ``{code}``: only the message that leaves has it.
    """
    settings, now = ground.config.apps[device.app].contacts, ground.clock.now()
    asked = Asked(
        contact_of(device),
        secrets.token_bytes(NONCE_BYTES),
        now,
        later(now, settings.code_s * SECOND_MS),
        counted_as(secret_of(ground.settings), device.app, device.token),
        settings.codes_per_hour,
    )
    if not await ground.store.contact_proofs.ask(asked):
        return False
    await ground.work.accept([NewNotification(_notification(device, settings, new_id, now))])
    return True


def contact_of(device: Device) -> Contact:
    """Return the contact that *device* is."""
    return Contact(device.app, device.user_id, device.platform, device.token_hash)


def _notification(device: Device, settings: ContactSettings, new_id: NotificationId, now: Instant) -> Notification:
    ttl_ms = settings.code_s * SECOND_MS
    return Notification(
        id=new_id,
        app=device.app,
        caller=CALLER,
        user_id=device.user_id,
        content=Content(title=settings.title, body=settings.text),
        device_ids=(device.device_id,),
        created_at=now,
        expires_at=later(now, ttl_ms),
        ttl_ms=ttl_ms,
        lane=Lane.CRITICAL,
        urgency=Urgency.CRITICAL,
    )
