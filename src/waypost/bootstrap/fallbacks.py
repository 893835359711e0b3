"""Fallbacks inside a channel, as the configuration names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waypost.bootstrap.registry import installed
from waypost.config import AppSettings, Config
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError, Fault
from waypost.domain.fallback import Fallbacks
from waypost.ports.plugin import SenderPlugin


def stand_ins(config: Config) -> dict[str, list[str]]:
    """List the credentials that stand in for each default one that has any."""
    return {
        f"{app}/{channel}": [f"{app}/{channel}/{name}" for name in names]
        for app, chosen in config.apps.items()
        for channel, names in chosen.fallback.items()
        if names
    }


def fallbacks_of(config: Config) -> Fallbacks:
    """Return who stands in for whom, and which apps do not wait where every account is refused."""
    orders = [
        [CredentialId(app, Channel(channel)), *(CredentialId(app, Channel(channel), name) for name in names)]
        for app, chosen in config.apps.items()
        for channel, names in chosen.fallback.items()
        if names
    ]
    return Fallbacks.of(orders, frozenset(app for app, chosen in config.apps.items() if chosen.on_denied == "fail"))


def check_fallbacks(config: Config) -> None:
    """Refuse, with ConfigurationError, fallbacks that are not there, or to whom nothing could be sent."""
    for name, app in config.apps.items():
        for fault in _faults(app, installed()):
            raise ConfigurationError(f"apps.{name}.fallback.{fault.path}", fault.why)


def _faults(app: AppSettings, plugins: Sequence[SenderPlugin]) -> Iterator[Fault]:
    titles = {str(plugin.channel): plugin.title for plugin in plugins if plugin.is_bound}
    for channel, names in app.fallback.items():
        if channel not in app.senders:
            yield Fault(channel, "the app has no such section")
        elif channel in titles:
            yield Fault(channel, f"what {titles[channel]} reaches belongs to one account: no other can stand in for it")
        elif len(set(names)) < len(names):
            yield Fault(channel, "names one twice")
        for name in names:
            if f"{channel}/{name}" not in app.senders:
                yield Fault(channel, f"the app has no section {channel}/{name}")
