"""The address of the dashboard, as the command line prints it."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from waypost.bootstrap.paths import run_dir_of
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import Instant, later
from waypost.features.dashboard.admittance import is_served
from waypost.features.dashboard.invitations import LASTS_MS, Invitations
from waypost.features.dashboard.settings import DashboardSettings
from waypost.runtime.clock import SystemClock
from waypost.runtime.roles import Role


class Door(Struct, frozen=True):
    """The address that people open."""

    url: str
    """With the token of a link, where nobody logs in."""
    good_until: Instant | None
    """When the link ends; None where people log in."""


def has_dashboard(config: Config) -> bool:
    """Tell whether the service serves a dashboard."""
    return Role.API in config.does() and is_served(config, _settings(config))


def dashboard_door(config: Config, url: str | None = None, *, renew: bool = False) -> Door:
    """Make a link to the dashboard of the service at *url*, or where it listens; with *renew*, end the others first.

    ConfigurationError where none is served, its service has not started yet, or the port is known to that alone.
    """
    settings = _settings(config)
    if not settings.enabled or Role.API not in config.does():
        why = "is not served: `dashboard.enabled` is false, or the role `api` is not among `roles`"
        raise ConfigurationError("dashboard", why)
    if not has_dashboard(config):
        why = "is not served: without `dashboard.accounts` or `dashboard.oidc` it needs"
        raise ConfigurationError("dashboard", f"{why} `listen` on the loopback, and no proxy before it")
    base = f"{(url or _address(config)).rstrip('/')}/dashboard"
    if settings.has_login:
        return Door(base, None)
    invitations, now = Invitations(run_dir_of(config)), SystemClock().now()
    token = invitations.link(now)
    if renew:  # only where there is a key: another one would not be the service's
        invitations.renew()
        token = invitations.link(now)
    return Door(f"{base}?token={token}", later(now, LASTS_MS))


def prepare_dashboard(config: Config) -> None:
    """Make the key of links, as the service's user and in the service's folder, if none is there."""
    if has_dashboard(config) and not _settings(config).has_login:
        with suppress(OSError):  # such as a full disk, which stops nothing else: links come after the next start
            Invitations(run_dir_of(config)).prepare()


def _settings(config: Config) -> DashboardSettings:
    settings = config.features.get("dashboard")
    return settings if isinstance(settings, DashboardSettings) else DashboardSettings()


def _address(config: Config) -> str:
    if config.rest.public_url is not None:
        return config.rest.public_url
    if config.listen.port == 0:
        raise ConfigurationError("listen", "has port 0: give the address that `waypost serve` printed as --url")
    return f"{'http' if config.rest.tls is None else 'https'}://{config.listen}"
