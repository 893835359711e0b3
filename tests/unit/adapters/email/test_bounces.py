"""Messages that came back, as servers and providers tell of them."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.deliveries import NID, TEXT_ID
from waypost.channels.email.bounces import Bounce, UnreadableBounce, read_dsn, read_postmark, read_ses
from waypost.channels.email.message_ids import Reference

OURS = Reference(NID, 3)
REFERENCE = f"{TEXT_ID}.3"


def dsn(action: str = "failed", status: str = "5.1.1", returned: str = "message/rfc822", named: str = "") -> bytes:
    """A notification as Postfix writes it."""
    headers = named or f"Message-ID: <{REFERENCE}@example.com>\nSubject: Hello"
    text = f"""From: MAILER-DAEMON@mx.example.net
To: news@example.com
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b1"

--b1
Content-Type: text/plain; charset=us-ascii

I'm sorry to have to inform you that your message could not be delivered.

--b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net
Arrival-Date: Tue, 24 Nov 2026 03:00:00 +0000 (UTC)

Final-Recipient: rfc822; ann@example.com
Action: {action}
Status: {status}
Diagnostic-Code: smtp; 550 5.1.1 <ann@example.com>: Recipient address rejected

--b1
Content-Type: {returned}

{headers}

--b1--
"""
    return text.replace("\n", "\r\n").encode()


def ses(kind: str, subtype: str, statuses: list[str], **mail: Any) -> bytes:
    """A notification by SNS."""
    told = {
        "notificationType": "Bounce",
        "bounce": {
            "bounceType": kind,
            "bounceSubType": subtype,
            "bouncedRecipients": [{"emailAddress": "ann@example.com", "status": status} for status in statuses],
        },
        "mail": {"messageId": "0102018f", **mail},
    }
    return json.dumps({"Type": "Notification", "MessageId": "22b8", "Message": json.dumps(told)}).encode()


@pytest.mark.parametrize(
    ("status", "permanent", "gone"),
    [("5.1.1", True, True), ("5.2.2", True, False), ("5.7.1", True, False), ("4.4.7", False, False)],
)
def test_a_notification_says_why_and_whether_for_good(status: str, permanent: bool, gone: bool) -> None:
    assert read_dsn(dsn(status=status)) == [Bounce(OURS, f"bounce_{status}", permanent, gone)]


@pytest.mark.parametrize("returned", ["message/rfc822", "text/rfc822-headers"])
@pytest.mark.parametrize("named", [f"X-Waypost-Id: {REFERENCE}\nMessage-ID: <0102@amazonses.com>", ""])
def test_our_message_is_found_in_what_is_returned(returned: str, named: str) -> None:
    (found,) = read_dsn(dsn(returned=returned, named=named))
    assert found.reference == OURS


@pytest.mark.parametrize(
    "message",
    [
        dsn(action="delayed", status="4.4.1"),
        dsn(action="delivered", status="2.0.0"),
        dsn(named="Message-ID: <somebody@else.example>"),
        b"From: ann@example.com\r\nSubject: Out of office\r\n\r\nBack on Monday.\r\n",
        b"",
    ],
)
def test_what_is_no_bounce_of_ours_is_none(message: bytes) -> None:
    assert read_dsn(message) == []


@pytest.mark.parametrize(
    ("kind", "subtype", "statuses", "want"),
    [
        ("Permanent", "General", ["5.1.1"], Bounce(OURS, "bounce_5.1.1", True, True)),
        ("Permanent", "Suppressed", [], Bounce(OURS, "bounce_permanent", True, True)),
        ("Permanent", "ContentRejected", ["5.6.1"], Bounce(OURS, "bounce_5.6.1", True, False)),
        ("Transient", "MailboxFull", ["4.2.2"], Bounce(OURS, "bounce_4.2.2", False, False)),
        ("Undetermined", "Undetermined", [], Bounce(OURS, "bounce_transient", False, False)),
    ],
)
def test_what_ses_tells(kind: str, subtype: str, statuses: list[str], want: Bounce) -> None:
    by_header = ses(kind, subtype, statuses, headers=[{"name": "X-Waypost-Id", "value": REFERENCE}])
    by_id = ses(kind, subtype, statuses, commonHeaders={"messageId": f"<{REFERENCE}@example.com>"})
    raw = json.loads(by_header)["Message"].encode()
    assert read_ses(by_header) == read_ses(by_id) == read_ses(raw) == [want]


def test_what_else_ses_tells_is_no_bounce() -> None:
    assert read_ses(b'{"Type": "SubscriptionConfirmation", "Message": "You have chosen to subscribe"}') == []
    assert read_ses(b'{"notificationType": "Delivery", "mail": {}, "delivery": {}}') == []
    assert read_ses(ses("Permanent", "General", [])) == []


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("HardBounce", Bounce(OURS, "bounce_hard_bounce", True, True)),
        ("SpamNotification", Bounce(OURS, "bounce_spam_notification", True, False)),
        ("Transient", Bounce(OURS, "bounce_transient", False, False)),
    ],
)
def test_what_postmark_tells(kind: str, want: Bounce) -> None:
    told = {"RecordType": "Bounce", "Type": kind, "Email": "ann@example.com", "Metadata": {"waypost": REFERENCE}}
    assert read_postmark(json.dumps(told).encode()) == [want]
    assert read_postmark(json.dumps(told | {"RecordType": "Open"}).encode()) == []
    assert read_postmark(json.dumps(told | {"Metadata": {}}).encode()) == []


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(lambda it: json.dumps(it).encode()))
def test_bytes_of_any_form_are_read_or_refused(body: bytes) -> None:
    read_dsn(b"Content-Type: multipart/report; boundary=x\r\n\r\n--x\r\n" + body)
    for read in (read_ses, read_postmark):
        with contextlib.suppress(UnreadableBounce):
            read(body)
