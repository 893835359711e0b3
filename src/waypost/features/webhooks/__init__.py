"""Webhooks out: status changes of notifications are told to the URL of a submission or of the app."""

from waypost.features.feature import Feature
from waypost.features.webhooks.settings import WebhooksSettings

WEBHOOKS = Feature(
    name="webhooks",
    docs="Status changes are POSTed to the `webhook_url` of a submission or the `status_url` of the app.",
    parts="waypost.features.webhooks.parts:PARTS",
    settings=WebhooksSettings,
    commands={"webhooks": "waypost.cli.webhooks:webhooks"},
)
