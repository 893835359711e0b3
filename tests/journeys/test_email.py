"""A reader gets an e-mail by a real service and mail server; a process that dies in between repeats the same one."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows

PASSWORD = "a password of 24 bytes.."
MAILBOX = "ann@xn--bcher-kva.example"
PUBLIC = "https://push.example.com"


def account(service: Service) -> Json:
    """The lab's mail server, with all that a message can have."""
    made = service.lab.directory
    (made / "unsubscribe-key").write_text("k" * 32)
    (made / "callback-password").write_text(PASSWORD)
    return {
        "host": "127.0.0.1",
        "port": urlsplit(service.lab.urls["email"]).port,
        "sender": "Example Shop <news@example.com>",
        "username": "lab",
        "password_file": f"{made}/smtp-password",
        "ca_file": f"{made}/ca.pem",
        "dkim_key_file": f"{made}/dkim.pem",
        "dkim_selector": "lab",
        "unsubscribe_url": "https://example.com/u/{token}",
        "unsubscribe_key_file": f"{made}/unsubscribe-key",
        "callback_password_file": f"{made}/callback-password",
    }


def unsubscribing(service: Service) -> Json:
    """Two types of message, and a page on which users turn off the one that they may."""
    secret = service.lab.directory / "preferences-secret"
    secret.write_bytes(bytes(range(32)))
    types = {"types": {"offer": {}, "code": {"critical": True}}}
    app = {"email": account(service), **types}
    return {"app": app, "preferences": {"secret_file": str(secret)}, "rest": {"public_url": PUBLIC}}


async def leaves(service: Service, header: str) -> None:
    """Post what a mail program posts when its reader unsubscribes, without a key or a session."""
    way = header.partition("<")[2].partition(">")[0]
    assert way.startswith(f"{PUBLIC}/p/demo/")
    url = service.url + way.removeprefix(PUBLIC)
    async with aiohttp.request("POST", url, data={"List-Unsubscribe": "One-Click"}) as answer:
        assert answer.status == 200


@pytest.mark.asyncio
async def test_one_click_in_a_mail_program_ends_e_mails_of_that_type(tmp_path: Path) -> None:
    """RFC 8058. A critical type has no link of ours, and goes on."""
    async with running(tmp_path, start=False) as service:
        service.configure(workers=1, **unsubscribing(service))
        await service.start()
        await service.ask("PUT", "/v1/users/ann/contacts/email", {"address": MAILBOX})
        offer = await told(service, type="offer")
        await until(lambda: service.is_sent(offer), "the offer")
        ((header, post),) = [
            (each["headers"]["List-Unsubscribe"], each["headers"]["List-Unsubscribe-Post"])
            for each in await mail(service, offer)
        ]
        assert post == "List-Unsubscribe=One-Click"
        await leaves(service, header)
        second = await told(service, type="offer", body="Another one")

        async def over() -> Json | None:
            detail: Json = (await service.ask("GET", f"/v1/notifications/{second}"))[1]
            return detail if detail["notification"]["finished_at"] else None

        detail = await until(over, "the end of the second offer")
        assert [(each["status"], each["reason"]) for each in detail["receipts"]] == [("suppressed", "preference")]
        code = await told(service, type="code")
        await until(lambda: service.is_sent(code), "the code")
        (got,) = await mail(service, code)
        assert got["headers"]["List-Unsubscribe"].startswith("<https://example.com/u/")


async def told(service: Service, **content: Any) -> str:
    """Tell ann by e-mail; the notification's id."""
    status, said = await service.ask(
        "POST", "/v1/notifications", {"user_id": "ann", "channels": ["email"], "title": "Your parcel", **content}
    )
    assert status == 202
    found: str = said["id"]
    return found


async def mail(service: Service, notification_id: str) -> list[Json]:
    """What arrived in ann's mailbox of one notification."""
    path = f"/received?gateway=email&token={quote(MAILBOX)}&notification_id={notification_id}"
    return [each["payload"] for each in (await service.lab.ask("GET", path))["received"] if each["accepted"]]


@shows("S4-77")
@pytest.mark.asyncio
async def test_a_reader_gets_an_email_and_after_a_kill_the_same_once_more(tmp_path: Path) -> None:
    async with running(tmp_path, start=False) as service:
        service.configure(workers=1, app={"email": account(service)})
        await service.start()
        status, said = await service.ask("PUT", "/v1/users/ann/contacts/email", {"address": "ann"})
        assert (status, said["faults"][0]["why"]) == (400, "must be a mailbox, such as ann@example.com")
        status, _ = await service.ask("PUT", "/v1/users/ann/contacts/email", {"address": "ann@Bücher.example"})
        assert status == 201

        first = await told(service, body="Grüße")
        await until(lambda: service.is_sent(first), "the first e-mail")
        (got,) = await mail(service, first)
        assert (got["subject"], got["text"], got["dkim"]) == ("Your parcel", "Grüße\n", True)
        assert got["message_id"] == f"<{first}.0@example.com>"
        assert got["headers"]["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        (receipt,) = (await service.ask("GET", f"/v1/notifications/{first}"))[1]["receipts"]
        assert (receipt["channel"], receipt["provider_id"]) == ("email", got["message_id"])

        hole = {"black_hole": {"accept": True}}
        await service.lab.script({"where": "email", "do": hole, "match": {"times": 1}})
        second = await told(service, body="Once more")
        await until(lambda: mail(service, second), "the message that is not answered")
        await service.kill(service.worker_pids()[0])
        await service.start()
        await until(lambda: service.is_sent(second), "the repeated message")
        copies = await mail(service, second)
        assert len(copies) == 2
        assert copies[0] == copies[1]

        await service.lab.ask("POST", f"/tokens/{MAILBOX}/kill", {})
        third = await told(service)

        async def gone() -> Json | None:
            receipts = (await service.ask("GET", f"/v1/notifications/{third}"))[1]["receipts"]
            return receipts[0] if receipts and receipts[0]["status"] == "failed" else None

        receipt = await until(gone, "a mailbox that is no more")
        assert (receipt["code"], receipt["reason"]) == ("smtp_550_5.1.1", "gone")
        log = (tmp_path / "serve.log").read_text()
        assert "bcher" not in log and "lab-password" not in log and "Grüße" not in log


@pytest.mark.asyncio
async def test_a_push_alone_goes_to_no_mailbox(tmp_path: Path) -> None:
    """What names no channels is for apps and browsers."""
    async with running(tmp_path, start=False) as service:
        service.configure(workers=1, app={"email": account(service)})
        await service.start()
        await service.ask("PUT", "/v1/users/ann/contacts/email", {"address": MAILBOX})
        status, said = await service.ask("POST", "/v1/notifications", {"user_id": "ann", "title": "Push"})
        assert status == 202

        async def finished() -> Json | None:
            detail = (await service.ask("GET", f"/v1/notifications/{said['id']}"))[1]
            return detail if detail["notification"]["finished_at"] else None

        await until(finished, "the end of a notification without targets")
        assert await mail(service, said["id"]) == []


@pytest.mark.asyncio
async def test_a_message_that_comes_back_fails_and_its_mailbox_is_forgotten(tmp_path: Path) -> None:
    """A mail server's own report, piped to us; who does not know the password changes nothing."""
    async with running(tmp_path, start=False) as service:
        service.configure(workers=1, app={"email": account(service)})
        await service.start()
        await service.ask("PUT", "/v1/users/ann/contacts/email", {"address": MAILBOX})
        sent = await told(service)
        await until(lambda: service.is_sent(sent), "an e-mail that was taken")
        (got,) = await mail(service, sent)
        report = DSN.replace("MESSAGE-ID", got["message_id"]).replace("\n", "\r\n").encode()
        assert await posted(service, report, "guessed") == 403
        assert await service.is_sent(sent)
        assert await posted(service, report, PASSWORD) == 204

        async def failed() -> Json | None:
            receipts = (await service.ask("GET", f"/v1/notifications/{sent}"))[1]["receipts"]
            return receipts[0] if receipts[0]["status"] == "failed" else None

        assert (await until(failed, "the receipt of what came back"))["code"] == "bounce_5.1.1"

        async def forgotten() -> bool:
            contacts = (await service.ask("GET", "/v1/users/ann/contacts"))[1]["contacts"]
            return not any(each.get("active", True) for each in contacts)

        await until(forgotten, "the end of the contact")


async def posted(service: Service, body: bytes, password: str) -> int:
    """The status of a mail server's report."""
    login = base64.b64encode(f"waypost:{password}".encode()).decode()
    headers = {"content-type": "message/rfc822", "authorization": f"Basic {login}"}
    url = f"{service.url}/callbacks/demo/email/default"
    async with aiohttp.request("POST", url, data=body, headers=headers) as answer:
        return answer.status


DSN = """From: MAILER-DAEMON@mx.example.net
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b1"

--b1
Content-Type: text/plain

I'm sorry to have to inform you that your message could not be delivered.

--b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; ann@xn--bcher-kva.example
Action: failed
Status: 5.1.1

--b1
Content-Type: text/rfc822-headers

Message-ID: MESSAGE-ID

--b1--
"""
