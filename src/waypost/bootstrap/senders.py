"""The senders of each app, and what their channels refuse at intake and at registration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import fields

from waypost.bootstrap.registry import installed
from waypost.config import AppSettings, Config
from waypost.domain.channel_steps import ChannelStep, step_faults, steps_of
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform, RegistrationCheck
from waypost.domain.drafting import ContentCheck, SpecialCheck
from waypost.domain.errors import ConfigurationError, Fault
from waypost.domain.ids import AppId
from waypost.domain.plain import SPECIAL
from waypost.http2 import COMPILED
from waypost.ports.plugin import Means, SenderPlugin
from waypost.ports.sender import Sender
from waypost.runtime.clock import SystemClock
from waypost.telemetry import Silent

AHEAD_LIMIT: Final = 64
"""The most credentials whose senders connect as they start; with more, each waits for something to send.

500 apps would open a thousand connections in every worker, and sign as often, before the first notification comes.
"""


def connect_ahead(config: Config) -> bool:
    """Tell whether senders connect as they start."""
    return sum(len(app.senders) for app in config.apps.values()) <= AHEAD_LIMIT


async def try_credentials(config: Config) -> dict[CredentialId, str | None]:
    """Read every credential as a worker does, and say of each what is wrong with it; nothing is sent."""
    found: dict[CredentialId, str | None] = {}
    for name, sender in senders_of(config, Means(SystemClock(), Silent(), ahead=False)).items():
        found[name] = None
        try:
            await sender.start()
        except ConfigurationError as wrong:
            found[name] = str(wrong)
        finally:
            await sender.stop(0.0)
    return found


def senders_of(config: Config, means: Means) -> dict[CredentialId, Sender]:
    """Build one sender a credential, not yet started; ConfigurationError names a plug-in whose sender is another's."""
    return {name: sender_of(means, name, plugin, section) for name, (plugin, section) in sections_of(config).items()}


def sections_of(config: Config) -> dict[CredentialId, tuple[SenderPlugin, Any]]:
    """Find the section of each credential, and the plug-in that reads it."""
    return {
        credential: (plugin, section)
        for app, chosen in config.apps.items()
        for plugin in installed()
        for slot, section in chosen.senders.items()
        if (credential := CredentialId.of(app, slot)).channel == plugin.channel
    }


def sender_of(means: Means, credential: CredentialId, plugin: SenderPlugin, section: Any) -> Sender:
    """Make the sender of one section."""
    sender = plugin.build(credential, section, means)
    if (sender.credential, sender.capabilities.channel) != (credential, plugin.channel):
        raise ConfigurationError(f"plug-in {plugin.channel}", f"its sender is not that of {credential}")
    return sender


def content_checks(app: AppSettings, plugins: Sequence[SenderPlugin]) -> list[ContentCheck]:
    """List the checks that refuse what an app's channels could never send, or what is meant for channels it lacks."""
    checks = [plugin.content_check for plugin in plugins if plugin.channel in app.senders]
    absent = [plugin for plugin in plugins if plugin.channel not in app.senders]
    checks += [_refusing(field, plugin) for plugin in absent for field in plugin.own_fields]
    named = (_known_channels(plugins), _known_listeners(app, plugins), _known_steps(app, plugins))
    return [*checks, *map(SpecialCheck, named)]


def registration_checks(
    name: AppId, app: AppSettings, plugins: Sequence[SenderPlugin]
) -> dict[Platform, RegistrationCheck]:
    """List the checks that refuse devices that the channel of their platform could never send to."""
    return {
        platform: plugin.registration_check(name, app.senders.get(plugin.channel))
        for plugin in plugins
        for platform in plugin.platforms
    }


def _refusing(field: str, plugin: SenderPlugin) -> ContentCheck:
    why = f"the app has no {plugin.title} account: {_advice(plugin)}"

    def check(content: Content, _: Kind) -> list[Fault]:
        return [] if getattr(content, field) is None else [Fault(field, why)]

    return SpecialCheck(check) if field in SPECIAL else check


def _advice(plugin: SenderPlugin) -> str:
    """Say what to write so that an app has a channel: its section, with what must be in it."""
    required = ", ".join(f"{each.encode_name}: …" for each in fields(plugin.settings) if each.required)
    return f"put `{plugin.channel}: {{{required}}}` under the app in waypost.yaml"


def _known_channels(plugins: Sequence[SenderPlugin]) -> ContentCheck:
    known = {plugin.channel for plugin in plugins}
    why = f"no such channel; there are {', '.join(sorted(known))}"

    def check(content: Content, _: Kind) -> list[Fault]:
        return [Fault("overrides", why)] if content.overrides and content.overrides.keys() - known else []

    return check


def _known_steps(app: AppSettings, plugins: Sequence[SenderPlugin]) -> ContentCheck:
    """Refuse channels that the app could not send by: nobody would be told."""

    def check(content: Content, _: Kind) -> list[Fault]:
        return list(_unknown_steps(content.channels, app, plugins))

    return check


def _unknown_steps(steps: Sequence[ChannelStep], app: AppSettings, plugins: Sequence[SenderPlugin]) -> Iterator[Fault]:
    has = [plugin for plugin in plugins if plugin.channel in app.senders]
    known = sorted({name for plugin in has for name in (plugin.channel, plugin.family)})
    for n, step in enumerate(steps):
        if step.to not in known:
            why = f"the app has no {step.to} account; it has {', '.join(known) or 'none'}"
            meant = [plugin for plugin in plugins if plugin.channel == step.to]
            yield Fault(f"channels[{n}]", ": ".join([why, *map(_advice, meant)]))


def check_default_channels(config: Config) -> None:
    """Refuse, with ConfigurationError, channels of an app's defaults by which nothing could ever be sent."""
    for name, app in config.apps.items():
        defaults = app.typed_defaults
        for kind in (None, *defaults.channels_by_type):
            said, where = defaults.channels_of(kind), "" if kind is None else f"_by_type.{kind}"
            faults = [*step_faults(said, defaults.ttl_of(kind)), *_unknown_steps(steps_of(said), app, installed())]
            for fault in faults:
                path = fault.path.replace("channels", f"channels{where}", 1)
                raise ConfigurationError(f"apps.{name}.defaults.{path}", fault.why)
        for kind, ttl_s in defaults.ttls_s.items():
            if next(step_faults(defaults.channels_of(kind), ttl_s), None) is not None:
                raise ConfigurationError(f"apps.{name}.types.{kind}.ttl_s", "is over before the last of its channels")


def http2_kernel() -> str:
    """Name the form in which the HTTP/2 client is installed (docs/decisions/0015)."""
    return "compiled" if COMPILED else "pure Python"


def _known_listeners(app: AppSettings, plugins: Sequence[SenderPlugin]) -> ContentCheck:
    known = {(plugin.channel, kind): plugin for plugin in plugins for kind in plugin.broadcasts}
    why = f"no such kind; there are {', '.join(f'{channel} {kind}' for channel, kind in sorted(known))}"

    def check(content: Content, _: Kind) -> list[Fault]:
        if content.to is None:
            return []
        plugin = known.get((content.to.channel, content.to.kind))
        if plugin is None:
            return [Fault("to", why)]
        return (
            []
            if plugin.channel in app.senders
            else [Fault("to", f"the app has no {plugin.title} account: {_advice(plugin)}")]
        )

    return check
