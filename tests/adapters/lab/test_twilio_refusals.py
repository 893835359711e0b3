"""The lab's Twilio refuses what Twilio's API refuses, by its codes, and signs its reports as Twilio does."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
import pytest_asyncio
from aiohttp import web

from tests.adapters.lab.senders import Senders
from waypost.lab.twilio import ACCOUNT_SID, PATH, TOKEN_FILE

pytestmark = pytest.mark.asyncio

NUMBER = "+491701234567"


class Telephone:
    """A caller of the Messages API with correct requests, changed as the test says. A None value removes."""

    def __init__(self, senders: Senders) -> None:
        self.client, self.url = senders.client, senders.urls.further["twilio"]
        self.secret = (senders.directory / TOKEN_FILE).read_text().strip()

    async def send(
        self, form: dict[str, Any] | None = None, *, user: str = ACCOUNT_SID, secret: str | None = None,
        path: str = PATH, method: str = "POST",
    ) -> httpx.Response:  # fmt: skip
        """Send a text message."""
        merged = {"To": NUMBER, "From": "+15550100100", "Body": "Hi", **(form or {})}
        fields = {name: value for name, value in merged.items() if value is not None}
        auth = httpx.BasicAuth(user, self.secret if secret is None else secret)
        return await self.client.request(method, self.url + path, data=fields, auth=auth)


@pytest.fixture
def telephone(senders: Senders) -> Telephone:
    return Telephone(senders)


async def test_a_message_is_taken_under_a_sid(telephone: Telephone) -> None:
    answer = await telephone.send()
    said = answer.json()
    assert (answer.status_code, said["status"], said["to"], said["body"]) == (201, "queued", NUMBER, "Hi")
    assert said["sid"].startswith("SM") and len(said["sid"]) == 34
    service = await telephone.send({"From": None, "MessagingServiceSid": "MG" + "a" * 32})
    assert (service.status_code, service.json()["status"]) == (201, "accepted")


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"To": None}, 21604),
        ({"To": "0170 1234567"}, 21211),
        ({"To": "+49 1701234567"}, 21211),
        ({"From": None}, 21603),
        ({"MessagingServiceSid": "MG" + "a" * 32}, 21603),
        ({"From": "a name that is too long"}, 21606),
        ({"From": None, "MessagingServiceSid": "MG1"}, 21606),
        ({"Body": None}, 21602),
        ({"Body": "x" * 1_601}, 21617),
        ({"ValidityPeriod": "0"}, 21621),
        ({"ValidityPeriod": "36001"}, 21621),
        ({"StatusCallback": "push.example.com"}, 21609),
        ({"StatusCallback": "https://my_host.example.com/x"}, 21609),
        ({"Text": "Hi"}, 20001),
        ({"Body": ["Hi", "Ho"]}, 20001),
        ({"To": "+15005550001"}, 21211),
        ({"To": "+15005550002"}, 21612),
        ({"To": "+15005550003"}, 21408),
        ({"To": "+15005550004"}, 21610),
        ({"To": "+15005550009"}, 21614),
    ],
)
async def test_a_wrong_form_is_refused_by_its_code(telephone: Telephone, form: dict[str, Any], code: int) -> None:
    answer = await telephone.send(form)
    said = answer.json()
    assert (answer.status_code, said["code"], said["status"]) == (400, code, 400)
    assert said["more_info"] == f"https://www.twilio.com/docs/errors/{code}"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"secret": "x"}, 401, 20003),
        ({"user": "AC" + "f" * 32}, 401, 20003),
        ({"path": PATH.replace(".json", "")}, 404, 20404),
        ({"path": PATH.replace(ACCOUNT_SID, "AC" + "f" * 32)}, 404, 20404),
        ({"method": "PUT"}, 405, 20004),
    ],
)
async def test_who_is_not_the_account_is_refused_first(
    telephone: Telephone, change: dict[str, str], status: int, code: int
) -> None:
    answer = await telephone.send({"To": None}, **change)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_a_body_that_is_no_form_is_refused(telephone: Telephone) -> None:
    auth = httpx.BasicAuth(ACCOUNT_SID, telephone.secret)
    answer = await telephone.client.post(telephone.url + PATH, json={"To": NUMBER}, auth=auth)
    assert (answer.status_code, answer.json()["code"]) == (415, 20415)


async def test_a_telephone_that_was_killed_is_refused(senders: Senders, telephone: Telephone) -> None:
    made = await senders.admin("POST", "/devices/twilio", {"number": NUMBER})
    assert made["endpoint"] == NUMBER
    await senders.admin("POST", f"/tokens/{NUMBER.replace('+', '%2B')}/kill", {})
    assert (await telephone.send()).json()["code"] == 21211
    assert (await telephone.send({"To": "+491701234568"})).status_code == 201


class Listener:
    """What a caller hears of its messages: the address, the fields and whether Twilio's token signed them."""

    def __init__(self, secret: str) -> None:
        self.heard: asyncio.Queue[tuple[dict[str, str], bool]] = asyncio.Queue()
        self.url = ""
        self._secret = secret.encode()

    async def take(self, request: web.Request) -> web.Response:
        """Check the signature as Twilio documents it: the address, then each field by name."""
        fields = dict(parse_qsl(await request.text(), keep_blank_values=True))
        text = self.url + "".join(name + fields[name] for name in sorted(fields))
        mac = hmac.digest(self._secret, text.encode(), hashlib.sha1)
        genuine = request.headers["X-Twilio-Signature"] == base64.b64encode(mac).decode()
        self.heard.put_nowait((fields, genuine))
        return web.Response(status=204)


@pytest_asyncio.fixture
async def listener(telephone: Telephone) -> AsyncIterator[Listener]:
    heard = Listener(telephone.secret)
    app = web.Application()
    app.router.add_post("/reports", heard.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    heard.url = f"http://127.0.0.1:{runner.addresses[0][1]}/reports?id=1&n=0"
    yield heard
    await runner.cleanup()


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (NUMBER, ("delivered", None)),
        ("+49170123430003", ("undelivered", "30003")),
        ("+49170123430007", ("undelivered", "30007")),
    ],
)
async def test_what_became_of_a_message_is_reported_and_signed(
    telephone: Telephone, listener: Listener, number: str, end: tuple[str, str | None]
) -> None:
    sid = (await telephone.send({"To": number, "StatusCallback": listener.url})).json()["sid"]
    reports = [await listener.heard.get() for _ in range(2)]
    assert [genuine for _, genuine in reports] == [True, True]
    (sent, _), (ended, _) = reports
    assert (sent["MessageStatus"], sent["MessageSid"], sent["To"]) == ("sent", sid, number)
    assert (ended["MessageStatus"], ended.get("ErrorCode")) == end


async def test_of_a_number_in_five_nines_nothing_is_heard_after_sent(telephone: Telephone, listener: Listener) -> None:
    """The next message's reports come, so that those of the first would have."""
    silent = "+49170123499999"
    await telephone.send({"To": silent, "StatusCallback": listener.url})
    assert (await listener.heard.get())[0]["To"] == silent
    await telephone.send({"StatusCallback": listener.url})
    statuses = [(await listener.heard.get())[0] for _ in range(2)]
    assert [(each["To"], each["MessageStatus"]) for each in statuses] == [(NUMBER, "sent"), (NUMBER, "delivered")]
