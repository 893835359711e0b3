"""Messages that came back after they were taken: delivery status notifications, and what providers post instead.

Sources: RFC 3464 (the notification), RFC 3462 (its parts); Amazon SES, "Amazon SNS notification contents"; Postmark,
"Bounce webhook". What is not about a message of ours, or tells of no failure, is no bounce.
"""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Iterable, Sequence
from email.message import EmailMessage, Message
from typing import Any, Final

import msgspec
from msgspec import Struct

from waypost.channels.email.errors import STATUSES
from waypost.channels.email.message_ids import REFERENCE_HEADER, Reference, read_reference
from waypost.channels.push.answers import Meaning

POSTMARK_METADATA: Final = "waypost"
"""The key of the metadata that our message carries, as ``X-PM-Metadata-waypost``."""
_STATUS = re.compile(r"([245])\.(\d{1,3})\.(\d{1,3})")
_SES_DEAD: Final = frozenset({"General", "NoEmail", "Suppressed", "OnAccountSuppressionList"})
"""Subtypes of a permanent bounce by which SES knows that nobody is there."""
_POSTMARK_DEAD: Final = frozenset({"HardBounce", "BadEmailAddress", "ManuallyDeactivated"})
_POSTMARK_TRANSIENT: Final = frozenset({"Transient", "SoftBounce", "DnsError", "AutoResponder"})


class Bounce(Struct, frozen=True):
    """A message of ours that came back."""

    reference: Reference
    code: str
    """``bounce_5.1.1``, or the provider's own word."""
    permanent: bool
    """Whether its server gave it up for good."""
    gone: bool
    """Whether there is no such mailbox."""


class UnreadableBounce(ValueError):
    """The error that something is not of the form that it should have."""


def read_dsn(message: bytes) -> list[Bounce]:
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
        if part.get_content_type() != "message/delivery-status":
            continue
        for fields in part.iter_parts():
            status = _STATUS.match(str(fields["Status"] or ""))
            if status and str(fields["Action"] or "").strip().lower() == "failed":
                found.append(_of_status(reference, status[0]))
    return found


def read_ses(body: bytes) -> list[Bounce]:
    """Read a notification of Amazon SES, by SNS or as SNS delivers it raw; UnreadableBounce if it is none."""
    told = _object(body)
    if isinstance(told.get("Message"), str):
        told = _object(told["Message"].encode()) if told.get("Type") == "Notification" else {}
    bounce, mail = told.get("bounce"), told.get("mail")
    if not isinstance(bounce, dict) or not isinstance(mail, dict):
        return []
    reference = _first(_named_by_ses(mail))
    if reference is None:
        return []
    permanent = bounce.get("bounceType") == "Permanent"
    recipients = bounce.get("bouncedRecipients")
    statuses = [each.get("status") for each in recipients or () if isinstance(each, dict)]
    status = next((found[0] for each in statuses if isinstance(each, str) and (found := _STATUS.match(each))), None)
    code = f"bounce_{status}" if status else f"bounce_{'permanent' if permanent else 'transient'}"
    return [Bounce(reference, code, permanent, permanent and bounce.get("bounceSubType") in _SES_DEAD)]


def read_postmark(body: bytes) -> list[Bounce]:
    """Read Postmark's bounce webhook; UnreadableBounce if it is no JSON object."""
    told = _object(body)
    kind, metadata = told.get("Type"), told.get("Metadata")
    if told.get("RecordType") != "Bounce" or not isinstance(kind, str) or not isinstance(metadata, dict):
        return []
    reference = read_reference(str(metadata.get(POSTMARK_METADATA, "")))
    if reference is None:
        return []
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
    return [Bounce(reference, f"bounce_{words}", kind not in _POSTMARK_TRANSIENT, kind in _POSTMARK_DEAD)]


def _of_status(reference: Reference, status: str) -> Bounce:
    meaning, _ = STATUSES.get(status, (Meaning.REFUSED, ""))
    return Bounce(reference, f"bounce_{status}", status[0] == "5", meaning is Meaning.DEAD_TOKEN)


def _returned(parts: Sequence[Message]) -> Reference | None:
    """Find the headers of our message, which a notification returns as a message or as text."""
    for part in parts:
        if part.get_content_type() == "text/rfc822-headers":
            text = part.get_payload(decode=True)
            headers: Message = email.message_from_bytes(text if isinstance(text, bytes) else b"")
        elif part.get_content_type() == "message/rfc822" and isinstance(part.get_payload(0), Message):
            headers = part.get_payload(0)  # type: ignore[assignment]  # as was asked
        else:
            continue
        if found := _first(str(headers[name]) for name in (REFERENCE_HEADER, "Message-ID") if headers[name]):
            return found
    return None


def _referred(parsed: EmailMessage) -> Reference | None:
    return _first(str(parsed["In-Reply-To"] or "").split() + str(parsed["References"] or "").split())


def _named_by_ses(mail: dict[str, Any]) -> Iterable[str]:
    """List what may name our message, the surest first: SES writes a ``Message-ID`` of its own."""
    headers = mail.get("headers")
    by_name = {
        str(each.get("name")).lower(): str(each.get("value")) for each in headers or () if isinstance(each, dict)
    }
    common = mail.get("commonHeaders")
    yield from (by_name.get(name.lower(), "") for name in (REFERENCE_HEADER, "Message-ID"))
    yield str(common.get("messageId", "")) if isinstance(common, dict) else ""


def _first(names: Iterable[str]) -> Reference | None:
    return next((found for each in names if (found := read_reference(each))), None)


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UnreadableBounce(str(error)) from None
    except UnicodeDecodeError:
        raise UnreadableBounce("it is not UTF-8") from None
