"""The receipts of devices: what an app reports of a notification that reached it."""

from waypost.features.feature import Feature
from waypost.features.receipts.settings import ReceiptSettings

RECEIPTS = Feature(
    name="receipts",
    docs="A device reports that a notification was delivered, displayed, opened or dismissed, or a button pressed.",
    parts="waypost.features.receipts.parts:PARTS",
    settings=ReceiptSettings,
)
