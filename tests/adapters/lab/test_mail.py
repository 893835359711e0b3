"""The lab's mail server refuses what a good one refuses, by the standard library's client."""

from __future__ import annotations

import asyncio
import base64
import smtplib
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from waypost.lab import Lab

GOOD = {
    "From": "news@example.com",
    "To": "ann@example.com",
    "Subject": "Hello",
    "Date": "Tue, 24 Nov 2026 03:00:00 +0000",
    "Message-ID": "<1@example.com>",
    "Auto-Submitted": "auto-generated",
    "MIME-Version": "1.0",
    "Content-Type": "text/plain; charset=us-ascii",
}


def message(body: str = "Hi\r\n", **headers: str | None) -> bytes:
    """A good message with other *headers*; None leaves one out."""
    named = GOOD | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items() if value is not None]
    return "\r\n".join([*lines, "", body]).encode("latin-1")


async def session(lab: Lab, do: Callable[[smtplib.SMTP], Any], *, tls: bool = True, login: bool = True) -> Any:
    """What *do* returns, in a session of its own."""
    at = urlsplit(lab.urls.further["email"])
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")

    def run() -> Any:
        with smtplib.SMTP(at.hostname or "", at.port or 0, timeout=30) as client:
            client.ehlo("test.example")
            if tls:
                client.starttls(context=context)
                client.ehlo("test.example")
            if login:
                client.login("lab", "lab-password")
            return do(client)

    return await asyncio.to_thread(run)


def said(*commands: str) -> Callable[[smtplib.SMTP], list[int]]:
    """The codes of these commands."""
    return lambda client: [client.docmd(command)[0] for command in commands]


def handed_over(raw: bytes) -> Callable[[smtplib.SMTP], tuple[int, str]]:
    """The answer to a whole message, whose lines go out as they are."""

    def do(client: smtplib.SMTP) -> tuple[int, str]:
        client.docmd("MAIL FROM:<news@example.com>")
        client.docmd("RCPT TO:<ann@example.com>")
        client.docmd("DATA")
        client.send(raw.replace(b"\r\n.", b"\r\n..") + b".\r\n")
        code, text = client.getreply()
        return code, text.decode()

    return do


@pytest.mark.asyncio
async def test_a_good_message_is_kept_as_it_was(lab: Lab) -> None:
    code, _ = await session(lab, handed_over(message("Hi\r\n.\r\n..\r\nthere\r\n")))
    assert code == 250
    content = lab.records.content(0)
    assert content is not None
    assert content.body == message("Hi\r\n.\r\n..\r\nthere\r\n")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (message("a\nb\r\n"), "a CR or LF alone"),
        (message("a\rb\r\n"), "a CR or LF alone"),
        (message("é\r\n"), "bytes above 127"),
        (message("x" * 999 + "\r\n"), "998"),
        (message(Subject=None), "once"),
        (message(Message_ID=None), "once"),
        (message(Subject="a\r\nSubject: b"), "once"),
        (message(Subject="a\r\nno header"), "no header"),
        (message(From="a@example.com, b@example.com"), "From"),
        (message(To="bob@example.com"), "To"),
        (message(Bcc="bob@example.com"), "Bcc"),
        (message(Date="yesterday"), "Date"),
        (message(Message_ID="1"), "Message-ID"),
        (message(Auto_Submitted=None), "auto-generated"),
        (message(MIME_Version=None), "MIME"),
        (message("--x\r\n", Content_Type="multipart/alternative; boundary=y"), "MIME"),
        (message(List_Unsubscribe_Post="List-Unsubscribe=One-Click"), "List-Unsubscribe-Post"),
        (message(DKIM_Signature="v=1; a=rsa-sha256; d=example.com; s=lab; h=from; bh=AA==; b=AA=="), "DKIM"),
    ],
)
async def test_each_fault_of_a_message_is_named(lab: Lab, raw: bytes, why: str) -> None:
    code, text = await session(lab, handed_over(raw))
    assert code == 550
    assert text.startswith("5.6.0")
    assert why in text
    assert lab.records.counts["email"].accepted == 0


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("commands", "codes"),
    [
        (["RCPT TO:<ann@example.com>"], [503]),
        (["MAIL FROM:<news@example.com>", "DATA"], [250, 503]),
        (["MAIL FROM:<news@example.com>", "MAIL FROM:<news@example.com>"], [250, 503]),
        (["MAIL FROM:<news@example.com>", "RSET", "MAIL FROM:<news@example.com>"], [250, 250, 250]),
        (["MAIL FROM:news@example.com"], [501]),
        (["MAIL FROM:<news@example.com> SIZE=99999999"], [552]),
        (["MAIL FROM:<news@example.com>", "RCPT TO:<ann lee@example.com>"], [250, 501]),
        (["MAIL FROM:<news@example.com>", *["RCPT TO:<ann@example.com>"] * 2], [250, 250, 452]),
        (["VRFY ann"], [502]),
        (["STARTTLS"], [503]),
        (["AUTH PLAIN AAAA"], [503]),
        (["x" * 600], [500]),
    ],
)
async def test_commands_have_an_order_and_a_form(lab: Lab, commands: list[str], codes: list[int]) -> None:
    assert await session(lab, said(*commands)) == codes


@pytest.mark.asyncio
async def test_nothing_goes_before_tls_and_a_login(lab: Lab) -> None:
    plain = base64.b64encode(b"\0lab\0lab-password").decode()
    before = said("MAIL FROM:<news@example.com>", f"AUTH PLAIN {plain}")
    assert await session(lab, before, tls=False, login=False) == [530, 538]
    wrong = base64.b64encode(b"\0lab\0guessed").decode()
    asked = said("MAIL FROM:<news@example.com>", f"AUTH PLAIN {wrong}", "AUTH CRAM-MD5", f"AUTH PLAIN {plain}")
    assert await session(lab, asked, login=False) == [530, 535, 504, 235]
    assert lab.records.counts["email"].violations == {}


@pytest.mark.asyncio
async def test_what_comes_before_it_was_asked_for_is_noted(lab: Lab) -> None:
    def do(client: smtplib.SMTP) -> None:
        client.send(b"NOOP\r\nNOOP\r\n")
        assert [client.getreply()[0], client.getreply()[0]] == [250, 250]
        client.send(b"NOOP\n")
        assert client.getreply()[0] == 500

    await session(lab, do)
    assert lab.records.counts["email"].violations == {"pipelining": 1, "line end": 1}
