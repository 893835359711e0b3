"""The message on the wire: its texts, its headers, its signature."""

from __future__ import annotations

import base64
import email
import email.policy
from email.message import EmailMessage
from functools import cache
from typing import Any

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.adapters.deliveries import TEXT_ID, delivery, notification
from waypost.channels.email.content import content_faults, one_line, text_of
from waypost.channels.email.dkim import DkimSigner
from waypost.channels.email.message import Author, Rendering, assemble, render
from waypost.channels.email.message_ids import Reference, read_reference
from waypost.channels.email.settings import CHANNEL
from waypost.channels.email.unsubscribing import Unsubscribing
from waypost.domain.content import Content, Kind
from waypost.domain.device import EMAIL
from waypost.domain.ids import UserId
from waypost.domain.message import message_of, rendered_for
from waypost.domain.time import Instant

AUTHOR = Author(
    "Bücher & Söhne, GmbH", "news@example.com", "bounces@example.com", None, "example.com", "smtp",
    Unsubscribing("https://example.com/u/{token}", b"k" * 32, "leave@example.com"), None,
)  # fmt: skip
PAST = Instant(1_700_000_000_000)
"""A signature of the future would not verify."""


@cache
def key() -> rsa.RSAPrivateKey:
    """One key for all."""
    return rsa.generate_private_key(65537, 2048)


def public(_name: bytes, timeout: int = 5) -> bytes:
    """What DNS would say of it."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return b"v=DKIM1; k=rsa; p=" + base64.b64encode(key().public_key().public_bytes(serialization.Encoding.DER, form))


def written(content: Content, author: Author = AUTHOR) -> bytes:
    """The message to ann@example.com, the third target."""
    one = delivery(EMAIL, "ann@example.com", notification(content, created_at=PAST), n=3)
    rendering = render(one.message, author)
    assert isinstance(rendering, Rendering)
    return assemble(rendering, one, author)


def read(raw: bytes) -> EmailMessage:
    """As a mail program does."""
    return email.message_from_bytes(raw, _class=EmailMessage, policy=email.policy.SMTP)


def told(**override: Any) -> Content:
    """Content with words for e-mail alone."""
    return Content(title="Title", body="Body", overrides={CHANNEL: override})


def test_it_says_who_when_and_which() -> None:
    got = read(written(Content(title="Grüße", body="Welt")))
    assert got["From"] == '"Bücher & Söhne, GmbH" <news@example.com>'
    assert (got["To"], got["Subject"]) == ("ann@example.com", "Grüße")
    assert got["Date"] == "Tue, 14 Nov 2023 22:13:20 +0000"
    assert got["Message-ID"] == f"<{TEXT_ID}.3@example.com>"
    assert got["Auto-Submitted"] == "auto-generated"
    assert read_reference(got["Message-ID"]) == read_reference(got["X-Waypost-Id"])
    assert [part.get_content_type() for part in got.walk()] == ["multipart/alternative", "text/plain", "text/html"]


@pytest.mark.parametrize(
    ("content", "subject", "text", "has_html"),
    [
        (Content(title="T", body="B"), "T", "B", True),
        (Content(title="T"), "T", "T", True),
        (
            Content(body="A long body\nof two lines " + "x" * 80),
            "A long body of two lines " + "x" * 52 + "…",
            None,
            True,
        ),
        (
            Content(title="T", subtitle="S", body="B", link="https://e.example"),
            "T",
            "S\n\nB\n\nhttps://e.example",
            True,
        ),
        (told(subject="Other"), "Other", "Body", True),
        (told(text="Only text"), "Title", "Only text", False),
        (told(text="Text", html="<p>Both</p>"), "Title", "Text", True),
        (told(html="<p>HTML</p>"), "Title", "Body", True),
    ],
)
def test_texts_come_from_the_content_or_from_what_is_for_email_alone(
    content: Content, subject: str, text: str | None, has_html: bool
) -> None:
    got = text_of(rendered_for(message_of(notification(content)), CHANNEL))
    assert got is not None
    assert got.subject == subject
    assert text in (None, got.text)
    assert (got.html is not None) is has_html


def test_what_is_content_is_no_markup() -> None:
    got = text_of(
        message_of(notification(Content(title="<b>", body="<script>alert(1)</script>", link='https://e.example/"')))
    )
    assert got is not None and got.html is not None
    assert "<script>" not in got.html and "<b>" not in got.html
    assert "&quot;" in got.html


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@settings(max_examples=150)
@given(TEXT, TEXT, st.sampled_from(["", "\r\n", "\n", "\r", "\r\n\r\n", "\x85", "\u2028", "\0"]))
def test_no_text_becomes_a_header_or_a_long_line(title: str, body: str, between: str) -> None:
    evil = f"{title}{between}Bcc: eve@example.com"
    if text_of(message_of(notification(Content(title=evil)))) is None:
        return
    override = {CHANNEL: {"headers": {"X-Campaign": one_line(evil)}}}
    plain, full = (
        written(Content(title="x", body="y")),
        written(Content(title=evil, body=body + between, overrides=override)),
    )
    assert full.isascii()
    lines = full.split(b"\r\n")
    assert all(len(line) <= 998 and b"\r" not in line and b"\n" not in line for line in lines)
    assert {*read(full)} == {*read(plain), "X-Campaign"}
    assert not any(part.defects for part in read(full).walk())


def test_a_signature_verifies_and_notices_a_change() -> None:
    """By another implementation."""
    author = replace(AUTHOR, signer=DkimSigner("example.com", "lab", key()))
    raw = written(Content(title="Grüße  und \t mehr", body="Zeile \n.\n\n\n"), author)
    assert dkim.verify(raw, dnsfunc=public)
    assert not dkim.verify(raw.replace(b"Zeile", b"Zeilf"), dnsfunc=public)
    for name in (b"Subject: ", b"From: ", b"List-Unsubscribe: ", b"List-Unsubscribe-Post: ", b"To: ", b"Date: "):
        assert not dkim.verify(raw.replace(name, name + b"x", 1), dnsfunc=public), name
    assert not dkim.verify(b"From: eve@example.org\r\n" + raw, dnsfunc=public)


@pytest.mark.parametrize(
    ("provider", "unsigned"), [("smtp", {"x-waypost-id"}), ("ses", {"x-waypost-id", "message-id", "date"})]
)
def test_what_the_server_changes_is_not_signed(provider: Any, unsigned: set[str]) -> None:
    author = replace(AUTHOR, provider=provider, signer=DkimSigner("example.com", "lab", key()))
    raw = written(Content(title="T"), author)
    signed = "".join(str(read(raw)["DKIM-Signature"]).split()).partition(";h=")[2].partition(";")[0].split(":")
    assert {name.lower() for name in read(raw)} - set(signed) == unsigned | {"dkim-signature"}
    assert dkim.verify(raw, dnsfunc=public)


def test_postmark_is_told_what_to_say_back() -> None:
    got = read(written(Content(title="T"), replace(AUTHOR, provider="postmark")))
    assert got["X-PM-KeepID"] == "true"
    reference = read_reference(got["X-PM-Metadata-waypost"])
    assert reference is not None and reference.target == 3


def test_a_name_that_is_too_long_for_a_line_leaves_the_mailbox_to_unsubscribe() -> None:
    long = replace(delivery(EMAIL, "ann@example.com").device, user_id=UserId("ü" * 500))
    assert AUTHOR.unsubscribing.headers(long) == [("List-Unsubscribe", b" <mailto:leave@example.com>")]


@pytest.mark.parametrize(
    ("override", "paths"),
    [
        ({"subject": "S", "text": "T", "html": "<p>", "reply_to": "a@example.com", "headers": {"X-A": "1"}}, []),
        ({"headers": {"References": "<a@b>", "feedback-id": "1:2"}}, []),
        ({"attachments": [{"url": "https://e.example/a.pdf"}]}, ["attachments"]),
        ({"from": "eve@example.com"}, ["from"]),
        ({"text": 1}, ["text"]),
        ({"subject": ""}, ["subject"]),
        ({"subject": "a\r\nBcc: b"}, ["subject"]),
        ({"reply_to": "nobody"}, ["reply_to"]),
        ({"headers": []}, ["headers"]),
        ({"headers": {"Bcc": "a@example.com"}}, ["headers.Bcc"]),
        ({"headers": {"From": "a@example.com"}}, ["headers.From"]),
        ({"headers": {"X-Waypost-Id": "1"}}, ["headers.X-Waypost-Id"]),
        ({"headers": {"X-A\r\nBcc": "1"}}, ["headers.X-A\r\nBcc"]),
        ({"headers": {"X-A": "1\r\nBcc: b"}}, ["headers.X-A"]),
        ({"headers": {"X-A": "1" * 901}}, ["headers.X-A"]),
    ],
)
def test_what_no_email_could_say_is_refused_by_its_path(override: dict[str, Any], paths: list[str]) -> None:
    found = [fault.path for fault in content_faults(told(**override), Kind.VISIBLE)]
    assert found == [f"overrides.email.{path}" for path in paths]


def test_a_silent_notification_is_no_email() -> None:
    assert content_faults(Content(data={"n": 1}), Kind.SILENT) == []
    (fault,) = content_faults(told(subject="S"), Kind.SILENT)
    assert fault.path == "overrides.email"


@pytest.mark.parametrize(
    "text", ["", "x", "<x@example.com>", f"{TEXT_ID}", f"{TEXT_ID}.x", f"{TEXT_ID}.1 x", f"{TEXT_ID}.1@a b"]
)
def test_what_names_no_delivery_is_none(text: str) -> None:
    assert read_reference(text) is None
    assert read_reference(f"<{TEXT_ID}.12@any.example>") == Reference(notification().id, 12)
