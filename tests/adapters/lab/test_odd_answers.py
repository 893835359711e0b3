"""What real providers do that surprises senders: ordered by a fault, a setting, or always."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.adapters.lab.senders import Senders, provider_token
from waypost.lab import Lab, LabSettings

pytestmark = pytest.mark.asyncio

HOUR_S = 3600


class Moved:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


@pytest.fixture
def clock() -> Moved:
    return Moved()


@pytest.fixture
def settings(settings: LabSettings, clock: Moved) -> LabSettings:
    return msgspec.structs.replace(settings, clock=clock)


@pytest.mark.parametrize(
    ("after_s", "status"), [(60, 429), (1190, 429), (1210, 200)], ids=["a minute", "almost 20 minutes", "20 minutes"]
)
async def test_a_connection_takes_another_token_after_20_minutes(
    senders: Senders, clock: Moved, after_s: int, status: int
) -> None:
    """Whatever the times of issue, which are 50 minutes apart here."""
    now = time.time()
    old, new = (provider_token(senders.apns_key, iat=now - age) for age in (2000, -1000))
    assert (await senders.apns({"authorization": f"bearer {old}"})).status_code == 200
    clock.ahead_s = after_s
    answer = await senders.apns({"authorization": f"bearer {new}"})
    assert answer.status_code == status
    assert status == 200 or answer.json()["reason"] == "TooManyProviderTokenUpdates"


async def test_apple_takes_another_web_push_token_after_an_hour(senders: Senders, clock: Moved) -> None:
    subscription = await senders.subscription(service="apple")
    answers = []
    for ahead_s in (0, 60, HOUR_S + 1):
        clock.ahead_s = ahead_s
        lasting = {"authorization": senders.vapid(exp=int(time.time()) + 8 * HOUR_S)}
        answers.append(await senders.webpush(subscription, lasting))
    assert [answer.status_code for answer in answers] == [201, 403, 201]
    assert answers[1].json() == {"reason": "BadJwtToken"}
    others = await senders.subscription(service="mozilla")
    assert (await senders.webpush(others, lasting)).status_code == 201


async def test_fields_are_laid_over_an_answer(senders: Senders) -> None:
    rules = [
        {"where": "apns", "do": {"answer": {"status": 410, "reason": "Unregistered", "fields": {"timestamp": 1.5}}}},
        {
            "where": "fcm",
            "do": {"answer": {"status": 404, "reason": "UNREGISTERED", "fields": {"error": {"message": None}}}},
        },
    ]
    await senders.admin("POST", "/faults", rules)
    assert (await senders.apns()).json() == {"reason": "Unregistered", "timestamp": 1.5}
    error = (await senders.fcm()).json()["error"]
    assert (error["message"], error["status"], error["details"][0]["errorCode"]) == (None, "NOT_FOUND", "UNREGISTERED")


@pytest.mark.parametrize("expires_in", [0, -1, "soon", None])
async def test_an_access_token_may_come_with_an_odd_life(senders: Senders, expires_in: object) -> None:
    fault = {"status": 200, "accept": True, "fields": {"expires_in": expires_in}}
    await senders.admin("POST", "/faults", [{"where": "oauth", "do": {"answer": fault}}])
    said = (await senders.oauth()).json()
    assert said["expires_in"] == expires_in
    await senders.admin("DELETE", "/faults")
    assert said["access_token"].startswith("ya29.")


async def test_a_project_may_be_named_by_its_number(lab: Lab, senders: Senders) -> None:
    for project, status in ((lab.settings.project_id, 200), (lab.settings.project_number, 200), ("210987654321", 403)):
        assert (await senders.fcm(project=project)).status_code == status


@pytest.mark.parametrize(("status", "word"), [(201, "dropped"), (200, "channelthrottled")])
async def test_windows_may_say_yes_and_mean_no(senders: Senders, status: int, word: str) -> None:
    subscription = await senders.subscription(service="windows")
    fault = {"status": status, "headers": {"X-WNS-Status": word}}
    await senders.admin("POST", "/faults", [{"where": "webpush", "do": {"answer": fault}}])
    answer = await senders.webpush(subscription)
    assert (answer.status_code, answer.headers["x-wns-status"]) == (status, word)


class TestNeedsLength:
    """A server in front that wants to know how much comes."""

    @pytest.fixture
    def settings(self, settings: LabSettings) -> LabSettings:
        return msgspec.structs.replace(settings, needs_length=True)

    async def test_a_body_without_its_length_is_411(self, lab: Lab, senders: Senders) -> None:
        async def streamed() -> AsyncIterator[bytes]:
            yield b"{}"

        url = f"{lab.urls.fcm}/v1/projects/x/messages:send"
        assert (await senders.client.post(url, content=streamed())).status_code == 411
        assert (await senders.client.post(url, content=b"{}")).status_code == 401
        assert lab.records.counts["fcm"].reasons["length_required"] == 1
