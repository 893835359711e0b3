"""Settings of the dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.adapters.jwt.settings import is_safe
from waypost.config import Config
from waypost.domain.errors import ConfigurationError

_PATH: Final = "dashboard.oidc"
_Text = Annotated[str, Meta(min_length=1)]


class RoleClaims(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of the claim that give each role; of several roles a person has the one that may most."""

    viewer: tuple[str, ...] = ()
    """Values of `role_claim` that make a viewer."""
    campaigner: tuple[str, ...] = ()
    """Values of `role_claim` that make a campaigner."""
    operator: tuple[str, ...] = ()
    """Values of `role_claim` that make an operator."""
    admin: tuple[str, ...] = ()
    """Values of `role_claim` that make an admin."""


class OidcSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider of OpenID Connect, by whom people log in; it sends them back to `/dashboard/-/oidc/callback`."""

    issuer: _Text
    """Its name, below which its discovery document lies: https, or http on the loopback."""
    client_id: _Text
    """The name of this dashboard at the provider."""
    client_secret_file: _Text
    """A file with the secret that goes with `client_id`; it is read with each login."""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    """The scopes that are asked for; `openid` is one of them."""
    role_claim: _Text = "groups"
    """The claim of the ID token, a text or a list, that says the role."""
    roles: RoleClaims
    """The values of that claim for each role."""


class DashboardSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the pages under `/dashboard`."""

    enabled: bool = True
    """Whether they are served: without a login only where `listen` is the loopback, by a link."""
    accounts: bool = False
    """Whether people log in, with accounts that `waypost accounts` makes; then pages are served on every address."""
    oidc: OidcSettings | None = None
    """The provider by whom people log in as well, or alone; it needs `rest.public_url`."""

    @property
    def has_login(self) -> bool:
        """Whether people have to log in."""
        return self.accounts or self.oidc is not None


def check_dashboard(config: Config) -> None:
    """Refuse, with ConfigurationError, a login by a provider that nobody could use, or not safely."""
    settings = (config.features.get("dashboard") or DashboardSettings()).oidc
    if settings is None:
        return
    if not is_safe(settings.issuer) or "?" in settings.issuer:
        raise ConfigurationError(f"{_PATH}.issuer", "is https, or http on the loopback, without a user and a query")
    if "openid" not in settings.scopes:
        raise ConfigurationError(f"{_PATH}.scopes", "must contain `openid`")
    roles = settings.roles
    if not (roles.viewer or roles.campaigner or roles.operator or roles.admin):
        raise ConfigurationError(f"{_PATH}.roles", "let nobody in: give the values of one role at least")
    if config.rest.public_url is None:
        raise ConfigurationError("rest.public_url", f"is required: the provider of `{_PATH}` sends people back to it")
    client_secret(settings)


def client_secret(settings: OidcSettings) -> str:
    """Read the client's secret; ConfigurationError where there is none."""
    try:
        secret = Path(settings.client_secret_file).read_text().strip()
    except (OSError, UnicodeDecodeError) as away:
        why = getattr(away, "strerror", None) or "it is no text"
        raise ConfigurationError(f"{_PATH}.client_secret_file", f"cannot be read: {why}") from None
    if not secret:
        raise ConfigurationError(f"{_PATH}.client_secret_file", "is empty")
    return secret
