"""Twilio's reports: the signature by Twilio's own example, and what each status says."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from tests.unit.adapters.deliveries import NID, TEXT_ID, delivery
from waypost.channels.sms.callbacks import callback_url, reports, signature
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.device import PHONE
from waypost.domain.ids import AppId
from waypost.domain.status import DeliveryStatus
from waypost.ports.callbacks import CallbackRequest, ForgedCallback, TargetReport

TOKEN = "12345"
EXAMPLE = [
    ("CallSid", "CA1234567890ABCDE"),
    ("Digits", "1234"),
    ("To", "+18005551212"),
    ("Caller", "+12349013030"),
    ("From", "+12349013030"),
]
D = DeliveryStatus


def test_the_signature_is_that_of_the_documentation() -> None:
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    assert signature(TOKEN, url, EXAMPLE) == "0/KCTR6DLpKmkAf8muzZqo1nDgQ="


def posted(status: str, code: str = "", *, about: str = f"id={TEXT_ID}&n=3", token: str = TOKEN) -> CallbackRequest:
    """A report as Twilio posts it."""
    fields = [("MessageSid", "SM1"), ("MessageStatus", status)] + ([("ErrorCode", code)] if code else [])
    url = f"https://push.example.com/callbacks/demo/sms/default?{about}"
    return CallbackRequest(url, {"x-twilio-signature": signature(token, url, fields)}, urlencode(fields).encode())


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ("queued", "", ()),
        ("sent", "", ()),
        ("delivered", "", (TargetReport(NID, 3, D.DELIVERED),)),
        ("read", "", (TargetReport(NID, 3, D.OPENED),)),
        ("undelivered", "30003", (TargetReport(NID, 3, D.FAILED, "30003", "the telephone is off or out of reach"),)),
        ("failed", "30005", (TargetReport(NID, 3, D.FAILED, "30005", "the number is not in use", is_dead=True),)),
        ("failed", "21610", (TargetReport(NID, 3, D.FAILED, "21610", "the recipient has opted out", is_dead=True),)),
        ("undelivered", "31337", (TargetReport(NID, 3, D.FAILED, "31337", "not delivered"),)),
        ("undelivered", "", (TargetReport(NID, 3, D.FAILED, "", "not delivered"),)),
        ("<script>", "", ()),
    ],
)
def test_what_a_status_says(status: str, code: str, expected: tuple[TargetReport, ...]) -> None:
    assert tuple(reports(TOKEN, posted(status, code))) == expected


@pytest.mark.parametrize("about", ["", "id=x&n=0", f"id={TEXT_ID}", f"id={TEXT_ID}&n=x"])
def test_a_report_of_nothing_of_ours_says_nothing(about: str) -> None:
    assert reports(TOKEN, posted("delivered", about=about)) == ()


def test_what_twilio_did_not_sign_is_forged() -> None:
    good = posted("delivered")
    for forged in (
        posted("delivered", token="54321"),
        replace(good, headers={}),
        replace(good, url=good.url.replace("n=3", "n=4")),
        replace(good, body=good.body.replace(b"delivered", b"failed")),
        replace(good, headers={"x-twilio-signature": "ä"}),
    ):
        with pytest.raises(ForgedCallback):
            reports(TOKEN, forged)


def test_the_address_of_reports_names_the_credential_and_the_target() -> None:
    one = replace(delivery(PHONE, "+1"), credential=CredentialId(AppId("demo"), Channel("sms")), n=3)
    assert callback_url("https://push.example.com", one) == posted("sent").url
    other = replace(one, credential=CredentialId(AppId("demo"), Channel("sms"), "us"))
    assert "/callbacks/demo/sms/us?" in str(callback_url("https://push.example.com", other))
    assert callback_url(None, one) is None
