"""Settings of webhooks out that are the same for all apps."""

from __future__ import annotations

from ipaddress import ip_network

from msgspec import Struct

from waypost.domain.errors import ConfigurationError


class WebhooksSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of what receivers may know of us."""

    source_addresses: tuple[str, ...] = ()
    """Addresses or networks that webhooks come from, told by `GET /v1/webhooks/sources`."""

    def __post_init__(self) -> None:
        """Refuse what is no address; ConfigurationError names it."""
        for n, text in enumerate(self.source_addresses):
            try:
                ip_network(text)
            except ValueError:
                path = f"webhooks.source_addresses[{n}]"
                raise ConfigurationError(path, "is neither an address nor a network") from None
