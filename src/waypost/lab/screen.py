"""The screen of a device: a later notification takes the place of the one with the same name.

Sources: Apple, "Sending notification requests to APNs" (``apns-collapse-id``); Google, "AndroidNotification" (``tag``);
WHATWG, Notifications API (``tag``), as a service worker uses it that shows what it is told.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab.records import Records, RequestBody


class ShownNotification(msgspec.Struct, frozen=True):
    """A notification on the screen."""

    notification_id: str
    title: str | None
    body: str | None
    place: str | None
    """The name of its place, None where nothing can replace it."""


def screen(records: Records, token: str) -> list[ShownNotification]:
    """List what is on the screen of the device with *token*, the oldest first; of what is kept with its bytes."""
    places: dict[str | int, ShownNotification] = {}
    for record in records.since(-1):
        content = records.content(record.seq) if record.accepted and record.token == token else None
        read = _READ.get(record.gateway)
        if content is None or read is None:
            continue
        text, place = read(content)
        if not text.get("title") and not text.get("body"):
            continue  # it only wakes the app
        key = record.seq if place is None else place
        places.pop(key, None)
        places[key] = ShownNotification(record.notification_id, text.get("title"), text.get("body"), place)
    return list(places.values())


Reading = tuple[dict[str, Any], str | None]
"""The title and body, and the name of the place."""


def _of_apns(content: RequestBody) -> Reading:
    alert = msgspec.json.decode(content.body or b"{}").get("aps", {}).get("alert", {})
    return {"body": alert} if isinstance(alert, str) else alert, content.headers.get("apns-collapse-id")


def _of_fcm(content: RequestBody) -> Reading:
    message = msgspec.json.decode(content.body)["message"]
    of_android = message.get("android", {}).get("notification", {})
    return message.get("notification", {}) | of_android, of_android.get("tag")


def _of_webpush(content: RequestBody) -> Reading:
    said = msgspec.json.decode(content.plaintext or b"{}")
    said = said.get("notification", said)
    return said, said.get("tag")


_READ: dict[str, Callable[[RequestBody], Reading]] = {
    "apns": _of_apns,
    "apns_sandbox": _of_apns,
    "fcm": _of_fcm,
    "webpush": _of_webpush,
}
