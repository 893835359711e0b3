"""Settings of an app's Huawei account (``apps.<app>.huawei``)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct
from waypost.domain.channel import Channel

CHANNEL: Final = Channel("huawei")


class HuaweiSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of which app sends, and in which time."""

    app_id: str
    """The app's id in AppGallery Connect."""
    app_secret_file: str
    """A file with the app's secret."""
    endpoint: str = "https://push-api.cloud.huawei.com"
    """The origin that messages are posted to."""
    token_endpoint: str = "https://oauth-login.cloud.huawei.com"
    """The origin that gives access tokens."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=100)] = 10
    """The most connections; each carries one message at a time."""
    timeout_s: Annotated[int, Meta(ge=1, le=120)] = 20
    """Seconds in which Huawei must have answered."""
