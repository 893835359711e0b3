"""The signed links by which devices confirm, as the configuration wants them."""

from __future__ import annotations

from waypost.config import Config
from waypost.domain.device_event import receipt_token
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.routing import ReceiptLinks
from waypost.features.receipts.settings import ReceiptSettings, secret_of


def receipt_links(config: Config) -> ReceiptLinks | None:
    """Build what signs links; None where none are made. ConfigurationError where it lacks the address or the secret."""
    settings: ReceiptSettings = config.features.get("receipts") or ReceiptSettings()
    secret, base = secret_of(settings), config.rest.public_url
    if secret is None:
        return None
    if base is None:
        raise ConfigurationError("rest.public_url", "is required: links of receipts need the address of this API")

    def link(app: AppId, notification_id: NotificationId, n: int) -> str:
        return f"{base}/r/{app}/{receipt_token(secret, app, notification_id, n)}"

    return ReceiptLinks(link, settings.in_every_push)
