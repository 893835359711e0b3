"""Rendering: what a template says to each address of one user, once for all addresses that are told the same."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.channels.email.settings import CHANNEL as EMAIL
from waypost.channels.inapp.settings import CHANNEL as INAPP
from waypost.domain.address import Address, Feed
from waypost.domain.audience import Audience
from waypost.domain.channel import PUSH, Channel
from waypost.domain.content import Content, TemplateUse
from waypost.domain.delivery import FailureClass
from waypost.domain.extras import how_to_install
from waypost.domain.ids import AppId
from waypost.domain.message import Message, message_of
from waypost.domain.notification import Notification
from waypost.domain.profile import NOBODY, Profile, zone_of
from waypost.domain.recipient import Recipient
from waypost.domain.settlement import Dead
from waypost.domain.template import (
    TEMPLATE_FAILED,
    TEMPLATE_GONE,
    Unrendered,
    Version,
    chain,
    entry_for,
    values_of,
)
from waypost.features.parts import Ground

if TYPE_CHECKING:
    from waypost.features.templates.compiled import Compiled, Wanted

FEATURE: Final = "templates"
_COMPILED: Final = "waypost.features.templates.compiled"
COMPILED_KEPT: Final = 128
SAID_KEPT: Final = 1_024
"""The most renderings that a process remembers: of a bulk send that says the same to all, one for each language."""

Said = dict[str, str]
_canonical: Final = msgspec.msgpack.Encoder(order="deterministic").encode


class Renderings:
    """The versions that were compiled and the latest renderings."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[AppId, str, int], Compiled] = {}
        self._said: dict[tuple[Any, ...], Said | Unrendered] = {}

    def of(self, app: AppId, version: Version) -> Compiled:
        """Return *version* compiled."""
        from waypost.features.templates.compiled import Compiled  # noqa: PLC0415 - what it needs is an optional extra

        key = app, version.name, version.number
        return self._compiled.get(key) or _kept(self._compiled, key, Compiled(version.content), COMPILED_KEPT)

    def said(self, wording: Wording, entry: str, wanted: Wanted) -> Said:
        """Render one entry, or return what was said by the same values before; Unrendered where that cannot be."""
        version = wording.version
        key = wording.app, version.name, version.number, entry, wording.hashed, wanted.locales, wanted.zone
        found = self._said.get(key)
        if found is None:
            try:
                made: Said | Unrendered = wording.compiled.said(entry, wording.values, wanted)
            except Unrendered as why:
                made = why
            found = _kept(self._said, key, made, SAID_KEPT)
        if isinstance(found, Unrendered):
            raise found
        return found


class Wording(Struct):
    """The template of one notification, with the values and the user that it is for."""

    ground: Ground
    renderings: Renderings
    app: AppId
    version: Version
    compiled: Compiled
    use: TemplateUse
    profile: Profile
    default_locale: str | None
    values: dict[str, Any]
    hashed: bytes
    made: dict[tuple[str, tuple[str, ...]], tuple[Message, Message | Dead]] = {}
    """The message as it came and what was made of it, by entry and locales: who shares them is told the same."""

    def to(self, message: Message, address: Address) -> Message | Dead:
        """Turn *message* into the one for *address*."""
        channel = self._channel_of(address)
        entry = entry_for(self.version.content, channel, self.ground.families.get(channel, PUSH))
        if entry is None:
            return _dead(Unrendered(TEMPLATE_FAILED, f"the template says nothing for {channel}"))
        locales = self._locales(address)
        before, made = self.made.get((entry, locales), (None, None))
        if made is None or before is not message:
            made = self._rendered(message, entry, locales)
            self.made[entry, locales] = message, made
        return made

    def _rendered(self, message: Message, entry: str, locales: tuple[str, ...]) -> Message | Dead:
        from waypost.features.templates.compiled import Wanted  # noqa: PLC0415 - as above

        zone = zone_of(self.profile.time_zone, self.ground.config.apps[self.app].time_zone)
        wanted = Wanted(locales, zone.key)
        try:
            said = self.renderings.said(self, entry, wanted)
        except Unrendered as why:
            return _dead(why)
        return replace(message, content=content_of(message.content, said))

    def _channel_of(self, address: Address) -> Channel:
        if isinstance(address, Feed):
            return INAPP
        if isinstance(address, Audience):
            return address.channel
        return self.ground.channels.get(address.platform, Channel(address.platform))

    def _locales(self, address: Address) -> tuple[str, ...]:
        """List the locales to look in: of the submission, else the user, else the device, else the app."""
        own = getattr(address, "locale", None)
        asked = self.use.locale or self.profile.locale or own or self.default_locale
        return chain(asked, self.version.content.default_locale)


async def facts(ground: Ground, notifications: Sequence[Notification]) -> Sequence[Wording | Dead | None]:
    """Read the versions that *notifications* say, and their users' languages; None for those without a template."""
    asked: dict[AppId, list[Notification]] = {}
    for each in notifications:
        if each.content.template is not None:
            asked.setdefault(each.app, []).append(each)
    found: dict[int, Wording | Dead] = {}
    if asked:
        await _load()
    for app, those in asked.items():
        uses = [each.content.template for each in those if each.content.template is not None]
        versions = await ground.store.templates.of(app, {(use.name, use.version) for use in uses})
        profiles = await ground.store.profiles.of(app, sorted({each.user_id for each in those}))
        for each, use in zip(those, uses, strict=True):
            version = versions.get((use.name, use.version))
            known = profiles.get(each.user_id, NOBODY)
            found[id(each)] = wording_of(ground, app, use, version, known, each.content.variant)
    return [found.get(id(each)) for each in notifications]


def concerns(notification: Notification) -> bool:
    """Tell whether a template says *notification*."""
    return notification.content.template is not None


def render(message: Message, address: Address, recipient: Recipient) -> Message | Dead:
    """Put what the template says into the message for *address*; where it says nothing, the delivery fails."""
    wording: Wording | Dead | None = recipient.facts.get(FEATURE)
    return wording.to(message, address) if isinstance(wording, Wording) else message if wording is None else wording


async def say(ground: Ground, notifications: Sequence[Notification]) -> Sequence[Notification]:
    """Return *notifications* with what their templates say in the feed; what cannot be said stays as it is stored."""
    wordings = await facts(ground, [each for each in notifications if each.app in ground.config.apps])
    known = iter(wordings)
    said: list[Notification] = []
    for each in notifications:
        wording = next(known) if each.app in ground.config.apps else None
        made = wording.to(message_of(each), Feed(each.user_id)) if isinstance(wording, Wording) else wording
        said.append(replace(each, content=made.content) if isinstance(made, Message) else each)
    return said


def content_of(content: Content, said: Said) -> Content:
    """Return *content* with what a template says; fields that the caller gave come first."""
    mail = {name: said[name] for name in ("subject", "html", "text") if name in said}
    overrides = content.overrides
    if mail:
        overrides = overrides | {EMAIL: mail | overrides.get(EMAIL, {})}
    return replace(
        content,
        title=said.get("title"),
        subtitle=said.get("subtitle"),
        body=said.get("body"),
        image=content.image or said.get("image"),
        icon=content.icon or said.get("icon"),
        link=content.link or said.get("link"),
        overrides=overrides,
    )


def wording_of(
    ground: Ground,
    app: AppId,
    use: TemplateUse,
    version: Version | None,
    known: Profile = NOBODY,
    variant: str | None = None,
) -> Wording | Dead:
    """Make *version* ready to be said to a user of whom *known* is known, or say why it cannot be.

    The *variant* of a split is one more variable.
    """
    if version is None:
        return _dead(Unrendered(TEMPLATE_GONE, f"version {use.version} of the template is gone"))
    renderings: Renderings = ({} if ground.memory is None else ground.memory).setdefault(Renderings, Renderings())
    try:
        compiled = renderings.of(app, version)
    except Unrendered as why:
        return _dead(why)
    except ModuleNotFoundError:
        return _dead(Unrendered(TEMPLATE_FAILED, f"not installed here: {how_to_install('templates')}"))
    values = values_of(version.content.variables, use.variables | ({} if variant is None else {"variant": variant}))
    hashed = hashlib.blake2b(_canonical(values), digest_size=16).digest()
    default = ground.config.apps[app].defaults.locale
    return Wording(ground, renderings, app, version, compiled, use, known, default, values, hashed)


async def _load() -> None:
    """Import what renders, which takes a moment, beside what goes on; where it is not installed, that is told later."""
    if _COMPILED not in sys.modules:
        with suppress(ModuleNotFoundError):
            await asyncio.to_thread(import_module, _COMPILED)


def _dead(why: Unrendered) -> Dead:
    return Dead(why.code, why.why, FailureClass.TERMINAL, letter=True)


def _kept(memory: dict[Any, Any], key: Any, value: Any, most: int) -> Any:
    memory[key] = value
    while len(memory) > most:
        del memory[next(iter(memory))]
    return value
