"""What became of messages after they were taken: delivery status notifications, and what providers post instead.

Sources: RFC 3464 (the notification), RFC 3462 (its parts); Amazon SES, "Contents of event data"; Postmark, "Bounce
webhook", "Delivery webhook", "Open tracking webhook". What is not about a message of ours, or says nothing final, is
read as nothing.
"""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Iterable, Sequence
from email.message import EmailMessage, Message
from typing import Any, Final

import msgspec

from waypost.channels.email.errors import REFUSED, STATUSES
from waypost.channels.email.message_ids import REFERENCE_HEADER, Reference, read_reference
from waypost.channels.push.answers import Meaning
from waypost.domain.status import DeliveryStatus
from waypost.ports.callbacks import TargetReport

POSTMARK_METADATA: Final = "waypost"
"""The key of the metadata that our message carries, as ``X-PM-Metadata-waypost``."""
CAME_BACK: Final = "it came back"
_STATUS = re.compile(r"([245])\.(\d{1,3})\.(\d{1,3})")
_REACHED: Final = {"Delivery": DeliveryStatus.DELIVERED, "Open": DeliveryStatus.OPENED}
"""The kinds of events of good news, of both providers."""
_SES_DEAD: Final = frozenset({"General", "NoEmail", "Suppressed", "OnAccountSuppressionList"})
"""Subtypes of a permanent bounce by which SES knows that nobody is there."""
_POSTMARK_DEAD: Final = frozenset({"HardBounce", "BadEmailAddress", "ManuallyDeactivated"})
_POSTMARK_OPEN: Final = frozenset(
    {"Transient", "AutoResponder", "AddressChange", "Subscribe", "Unsubscribe", "ChallengeVerification"}
)
"""Types that are no end: Postmark tries again, or somebody wrote back."""


def read_dsn(message: bytes) -> list[TargetReport]:
    """Read a delivery status notification, as it comes to the mailbox ``bounces_to``."""
    parsed = email.message_from_bytes(message, _class=EmailMessage, policy=email.policy.default)
    if parsed.get_content_type() != "multipart/report":
        return []
    parts = list(parsed.walk())
    reference = _returned(parts) or _referred(parsed)
    if reference is None:
        return []
    found = []
    for part in parts:
        for fields in part.iter_parts() if part.get_content_type() == "message/delivery-status" else ():
            status, action = _STATUS.match(str(fields["Status"] or "")), str(fields["Action"] or "").strip().lower()
            if action == "delivered":
                found.append(TargetReport(*reference, DeliveryStatus.DELIVERED))
            elif action == "failed" and status:
                found.append(_came_back(reference, status[0]))
    return found


def read_ses(body: bytes) -> list[TargetReport]:
    """Read an event of Amazon SES, as EventBridge, SNS, or SNS with raw delivery posts it."""
    told = _object(body)
    if isinstance(told.get("Message"), str):
        told = _object(told["Message"].encode())
    told = _inner(told, "detail") or told
    kind, mail = told.get("eventType") or told.get("notificationType"), _inner(told, "mail")
    reference = _first(_named_by_ses(mail))
    if reference is None or not isinstance(kind, str):
        return []
    if kind in _REACHED:
        return [TargetReport(*reference, _REACHED[kind])]
    if kind != "Bounce":
        return []
    bounce = _inner(told, "bounce")
    is_dead = bounce.get("bounceType") == "Permanent" and bounce.get("bounceSubType") in _SES_DEAD
    statuses = (_STATUS.match(str(each.get("status"))) for each in _objects(bounce, "bouncedRecipients"))
    status = next((found[0] for found in statuses if found), None)
    if status is not None:
        return [msgspec.structs.replace(_came_back(reference, status), is_dead=is_dead)]
    code = "permanent" if bounce.get("bounceType") == "Permanent" else "transient"
    return [TargetReport(*reference, DeliveryStatus.FAILED, f"bounce_{code}", CAME_BACK, is_dead)]


def read_postmark(body: bytes) -> list[TargetReport]:
    """Read what Postmark posts."""
    told = _object(body)
    record, kind = told.get("RecordType"), told.get("Type")
    reference = read_reference(str(_inner(told, "Metadata").get(POSTMARK_METADATA, "")))
    if reference is None or not isinstance(record, str):
        return []
    if record in _REACHED:
        return [TargetReport(*reference, _REACHED[record])]
    if record != "Bounce" or not isinstance(kind, str) or not kind.isalpha() or kind in _POSTMARK_OPEN:
        return []
    code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind[:40]).lower()
    return [TargetReport(*reference, DeliveryStatus.FAILED, f"bounce_{code}", CAME_BACK, kind in _POSTMARK_DEAD)]


def _came_back(reference: Reference, status: str) -> TargetReport:
    """Report a bounce by its enhanced code, of which our table knows some."""
    meaning, why = STATUSES.get(status, (REFUSED[0], CAME_BACK))
    code = status if status in STATUSES else f"{status[0]}xx"
    is_dead = meaning is Meaning.DEAD_TOKEN
    return TargetReport(*reference, DeliveryStatus.FAILED, f"bounce_{code}", why, is_dead)


def _returned(parts: Sequence[Message]) -> Reference | None:
    """Find the headers of our message, which a notification returns as a message or as text."""
    for part in parts:
        headers: Any = None
        if part.get_content_type() == "text/rfc822-headers":
            text = part.get_payload(decode=True)
            headers = email.message_from_bytes(text if isinstance(text, bytes) else b"")
        elif part.get_content_type() == "message/rfc822" and part.is_multipart():
            headers = part.get_payload(0)
        if headers is not None:
            named = _first(str(headers[name] or "") for name in (REFERENCE_HEADER, "Message-ID"))
            if named is not None:
                return named
    return None


def _referred(parsed: EmailMessage) -> Reference | None:
    return _first(str(parsed["In-Reply-To"] or "").split() + str(parsed["References"] or "").split())


def _named_by_ses(mail: dict[str, Any]) -> Iterable[str]:
    """List what may name our message, the surest first: SES writes a ``Message-ID`` of its own."""
    by_name = {str(each.get("name")).lower(): str(each.get("value")) for each in _objects(mail, "headers")}
    yield from (by_name.get(name.lower(), "") for name in (REFERENCE_HEADER, "Message-ID"))
    yield str(_inner(mail, "commonHeaders").get("messageId", ""))


def _first(names: Iterable[str]) -> Reference | None:
    return next((found for each in names if (found := read_reference(each))), None)


def _object(body: bytes) -> dict[str, Any]:
    """Decode a JSON object; nothing of what is none."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _inner(told: dict[str, Any], name: str) -> dict[str, Any]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def _objects(told: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = told.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
