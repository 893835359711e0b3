"""Twilio's reports of what became of a message: where they are sent, whether they are genuine, what they say. Pure.

Source: Twilio, "Validating signatures from Twilio" (X-Twilio-Signature) and "Track the message status".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from waypost.channels.sms.errors import CODES, DEAD_CODES
from waypost.domain.delivery import Delivery
from waypost.domain.ids import format_id, parse_id
from waypost.domain.status import DeliveryStatus
from waypost.ports.callbacks import CallbackRequest, ForgedCallback, TargetReport

_REACHED: Final[Mapping[str, DeliveryStatus]] = {
    "delivered": DeliveryStatus.DELIVERED,
    "read": DeliveryStatus.OPENED,
    "undelivered": DeliveryStatus.FAILED,
    "failed": DeliveryStatus.FAILED,
    "canceled": DeliveryStatus.FAILED,
}
"""The statuses that say what became of it; the others say that it is on its way."""


def callback_url(public_url: str | None, delivery: Delivery) -> str | None:
    """Return the address for reports on *delivery*; None where Twilio cannot reach us."""
    if public_url is None:
        return None
    about = urlencode({"id": format_id(delivery.id), "n": delivery.n})
    credential = delivery.credential
    return f"{public_url}/callbacks/{credential.app}/{credential.channel}/{credential.name or 'default'}?{about}"


def reports(auth_token: str, request: CallbackRequest) -> Sequence[TargetReport]:
    """Read a report; ForgedCallback where its signature is not of *auth_token*."""
    fields = parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)
    given = request.headers.get("x-twilio-signature", "")
    if not hmac.compare_digest(given.encode(), signature(auth_token, request.url, fields).encode()):
        raise ForgedCallback
    said, about = dict(fields), dict(parse_qsl(urlsplit(request.url).query))
    status = _REACHED.get(said.get("MessageStatus", ""))
    if status is None:
        return ()
    try:
        notification_id, n = parse_id(about["id"]), int(about["n"])
    except (KeyError, ValueError):
        return ()
    if status is not DeliveryStatus.FAILED:
        return (TargetReport(notification_id, n, status),)
    code = said.get("ErrorCode", "")
    number = int(code) if code.isascii() and code.isdecimal() else 0
    _, why = CODES.get(number, (None, "not delivered"))
    return (TargetReport(notification_id, n, status, str(number or ""), why, is_dead=number in DEAD_CODES),)


def signature(auth_token: str, url: str, fields: Sequence[tuple[str, str]]) -> str:
    """Sign *url* with its posted *fields*, in the order of their names."""
    text = url + "".join(name + value for name, value in sorted(fields))
    return base64.b64encode(hmac.digest(auth_token.encode(), text.encode(), hashlib.sha1)).decode()
