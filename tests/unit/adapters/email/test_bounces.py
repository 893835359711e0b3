"""Messages that came back, as servers and providers tell of them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.adapters.deliveries import NID, TEXT_ID
from waypost.channels.email.bounces import CAME_BACK, read_dsn, read_postmark, read_ses
from waypost.channels.email.callbacks import reports
from waypost.channels.email.plugin import PLUGIN
from waypost.channels.email.settings import EmailSettings
from waypost.domain.status import DeliveryStatus as D
from waypost.ports.callbacks import CallbackRequest, ForgedCallback, TargetReport

PASSWORD = "a password of 24 bytes.."
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


def back(code: str, why: str = CAME_BACK, *, dead: bool = False) -> TargetReport:
    """What came back."""
    return TargetReport(NID, 3, D.FAILED, code, why, dead)


UNKNOWN = back("bounce_5.1.1", "there is no such mailbox", dead=True)
FULL = back("bounce_4.2.2", "the mailbox, or the server's storage, is full at the moment")
DELIVERED, OPENED = TargetReport(NID, 3, D.DELIVERED), TargetReport(NID, 3, D.OPENED)


@pytest.mark.parametrize(
    ("status", "want"),
    [
        ("5.1.1", UNKNOWN),
        ("5.2.2", back("bounce_5.2.2", "the mailbox is full")),
        ("5.0.0", back("bounce_5xx")),
        ("4.4.7", back("bounce_4xx")),
    ],
)
def test_a_notification_says_why_and_whether_for_good(status: str, want: TargetReport) -> None:
    assert read_dsn(dsn(status=status)) == [want]


@pytest.mark.parametrize("returned", ["message/rfc822", "text/rfc822-headers"])
@pytest.mark.parametrize("named", [f"X-Waypost-Id: {REFERENCE}\nMessage-ID: <0102@amazonses.com>", ""])
def test_our_message_is_found_in_what_is_returned(returned: str, named: str) -> None:
    assert read_dsn(dsn(returned=returned, named=named)) == [UNKNOWN]


def test_a_message_that_was_delivered_after_all_is_no_failure() -> None:
    assert read_dsn(dsn(action="delivered", status="2.0.0")) == [DELIVERED]


@pytest.mark.parametrize(
    "message",
    [
        dsn(action="delayed", status="4.4.1"),
        dsn(action="relayed", status="2.0.0"),
        dsn(named="Message-ID: <somebody@else.example>"),
        b"From: ann@example.com\r\nSubject: Out of office\r\n\r\nBack on Monday.\r\n",
        b"",
    ],
)
def test_what_is_no_end_of_ours_is_nothing(message: bytes) -> None:
    assert read_dsn(message) == []


@pytest.mark.parametrize(
    ("kind", "subtype", "statuses", "want"),
    [
        ("Permanent", "General", ["5.1.1"], UNKNOWN),
        ("Permanent", "Suppressed", [], back("bounce_permanent", dead=True)),
        ("Permanent", "ContentRejected", ["5.6.1"], back("bounce_5xx")),
        ("Transient", "MailboxFull", ["4.2.2"], FULL),
        ("Undetermined", "Undetermined", [], back("bounce_transient")),
    ],
)
def test_what_ses_tells(kind: str, subtype: str, statuses: list[str], want: TargetReport) -> None:
    by_header = ses(kind, subtype, statuses, headers=[{"name": "X-Waypost-Id", "value": REFERENCE}])
    by_id = ses(kind, subtype, statuses, commonHeaders={"messageId": f"<{REFERENCE}@example.com>"})
    raw = json.loads(by_header)["Message"]
    bridged = json.dumps({"source": "aws.ses", "detail-type": "Email Bounced", "detail": json.loads(raw)}).encode()
    assert read_ses(by_header) == read_ses(by_id) == read_ses(raw.encode()) == read_ses(bridged) == [want]


def test_what_else_ses_tells() -> None:
    mail = {"headers": [{"name": "X-Waypost-Id", "value": REFERENCE}]}
    kinds = {"Delivery": [DELIVERED], "Open": [OPENED], "Send": [], "Click": []}
    assert {kind: read_ses(json.dumps({"eventType": kind, "mail": mail}).encode()) for kind in kinds} == kinds
    assert read_ses(b'{"Type": "SubscriptionConfirmation", "Message": "You have chosen to subscribe"}') == []
    assert read_ses(ses("Permanent", "General", [])) == []


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("HardBounce", [back("bounce_hard_bounce", dead=True)]),
        ("SpamNotification", [back("bounce_spam_notification")]),
        ("DMARCPolicy", [back("bounce_dmarcpolicy")]),
        ("Transient", []),
        ("AutoResponder", []),
    ],
)
def test_what_postmark_tells(kind: str, want: list[TargetReport]) -> None:
    told: dict[str, Any] = {"RecordType": "Bounce", "Type": kind, "Metadata": {"waypost": REFERENCE}}
    assert read_postmark(json.dumps(told).encode()) == want
    assert read_postmark(json.dumps(told | {"RecordType": "Delivery"}).encode()) == [DELIVERED]
    assert read_postmark(json.dumps(told | {"RecordType": "Open"}).encode()) == [OPENED]
    assert read_postmark(json.dumps(told | {"Metadata": {}}).encode()) == []


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(lambda it: json.dumps(it).encode()))
def test_bytes_of_any_form_are_read(body: bytes) -> None:
    read_dsn(b"Content-Type: multipart/report; boundary=x\r\n\r\n--x\r\n" + body)
    read_dsn(dsn().replace(b"Final-Recipient", body))
    assert read_ses(body) == read_postmark(body) == []


def posted(body: bytes, kind: str = "application/json", password: str = PASSWORD) -> CallbackRequest:
    """A callback by a provider that knows *password*."""
    said = base64.b64encode(f"waypost:{password}".encode()).decode()
    headers = {"content-type": kind, "authorization": f"Basic {said}"}
    return CallbackRequest("https://push.example.com/callbacks/demo/email/default", headers, body)


def test_a_callback_is_read_by_its_type_and_the_provider() -> None:
    postmark = json.dumps({"RecordType": "Open", "Metadata": {"waypost": REFERENCE}}).encode()
    assert reports(PASSWORD, "postmark", posted(postmark)) == [OPENED]
    assert reports(PASSWORD, "ses", posted(postmark)) == []
    assert tuple(reports(PASSWORD, "smtp", posted(postmark))) == ()
    assert reports(PASSWORD, "smtp", posted(dsn(), "Message/RFC822; charset=us-ascii")) == [UNKNOWN]


def test_who_does_not_know_the_password_is_not_the_provider(tmp_path: Path) -> None:
    good = posted(dsn(), "message/rfc822")
    for forged in (
        posted(dsn(), "message/rfc822", "guessed"),
        posted(dsn(), "message/rfc822", ""),
        replace(good, headers={"content-type": "message/rfc822"}),
        replace(good, headers=dict(good.headers) | {"authorization": f"Bearer {PASSWORD}"}),
        replace(good, headers=dict(good.headers) | {"authorization": "Basic ä"}),
    ):
        with pytest.raises(ForgedCallback):
            reports(PASSWORD, "smtp", forged)
    assert PLUGIN.callback is not None
    without = EmailSettings(host="localhost", sender="news@example.com")
    with pytest.raises(ForgedCallback):
        PLUGIN.callback(without, good)
    (tmp_path / "password").write_text(PASSWORD)
    assert PLUGIN.callback(replace(without, callback_password_file=str(tmp_path / "password")), good) == [UNKNOWN]
