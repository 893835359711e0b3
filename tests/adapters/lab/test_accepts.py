"""A correct request is accepted by each gateway and can be read back as it was sent."""

import json
import ssl

import httpx
import pytest

from tests.adapters.lab.senders import ANDROID, NID, TOKEN, Senders
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio


async def test_apns_takes_an_alert_and_echoes_its_id(senders: Senders) -> None:
    answer = await senders.apns({"apns-id": NID})
    assert (answer.status_code, answer.content, answer.headers["apns-id"]) == (200, b"", NID)
    assert answer.http_version == "HTTP/2"
    (record,) = (await senders.admin("GET", "/received?gateway=apns"))["received"]
    assert (record["token"], record["notification_id"], record["accepted"]) == (TOKEN, NID, True)
    assert record["payload"]["aps"]["alert"]["title"] == "Hi"
    assert "authorization" not in record["headers"]


async def test_fcm_takes_a_message_with_a_token_from_the_oauth_endpoint(senders: Senders) -> None:
    answer = await senders.fcm()
    assert answer.status_code == 200, answer.text
    assert answer.json()["name"].startswith("projects/lab-project/messages/0:")
    (record,) = (await senders.admin("GET", f"/received?notification_id={NID}"))["received"]
    assert (record["gateway"], record["token"]) == ("fcm", ANDROID)


async def test_webpush_takes_and_decrypts_a_message(senders: Senders) -> None:
    subscription = await senders.subscription()
    answer = await senders.webpush(subscription)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"].startswith(senders.urls.webpush)
    (record,) = (await senders.admin("GET", f"/received?token={subscription['endpoint']}"))["received"]
    assert record["payload"] == {"waypost_id": NID, "title": "Hi"}


async def test_token_endpoint_and_push_service_also_speak_http_1_1(senders: Senders, lab: Lab) -> None:
    subscription = await senders.subscription()
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    async with httpx.AsyncClient(verify=context) as client:
        old = Senders(client, lab.urls, lab.settings.directory)
        token, push = await old.oauth(), await old.webpush(subscription)
    assert (token.status_code, push.status_code) == (200, 201), push.text
    assert (token.http_version, push.http_version) == ("HTTP/1.1", "HTTP/1.1")


async def test_counts_tell_duplicates_and_what_each_connection_carried(senders: Senders) -> None:
    for _ in range(3):
        await senders.apns()
    await senders.apns(
        {"apns-push-type": "background", "apns-priority": "5"}, {"aps": {"content-available": 1}, "waypost_id": "b"}
    )
    counts = await senders.admin("GET", "/counts")
    assert (counts["apns"]["accepted"], counts["apns"]["duplicates"]) == (4, 2)
    (connection,) = [c for c in counts["connections"] if c["gateway"] == "apns"]
    assert connection["push_types"] == {"alert": 3, "background": 1}
    assert await senders.admin("GET", "/summary") == {NID: {TOKEN: 3}, "b": {TOKEN: 1}}


async def test_the_journal_has_a_line_per_accepted_push(senders: Senders, lab: Lab) -> None:
    await senders.apns()
    await senders.apns({"apns-priority": "7"})
    lab.records.flush()
    (line,) = (lab.settings.directory / "received.ndjson").read_text().splitlines()
    assert json.loads(line)["notification_id"] == NID
