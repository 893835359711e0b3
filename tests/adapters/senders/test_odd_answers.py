"""What providers really answer, through the whole of each sender: odd fields, and servers that want a length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.adapters.senders.bench import SystemClock, outcome, script, to_android, to_ios, to_web
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.webpush.sender import WebPushSender
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.ids import AppId
from waypost.domain.outcome import Gone, Outcome, Refused, Taken
from waypost.lab import Lab, LabSettings
from waypost.ports.sender import Sender
from waypost.telemetry.sink import Silent

TO: dict[str, Callable[[Lab], Delivery]] = {"apns": to_ios, "fcm": to_android, "webpush": to_web}
UNREGISTERED = {"status": 404, "reason": "UNREGISTERED"}
INVALID = {"status": 400, "reason": "INVALID_ARGUMENT"}
DEAD = {"status": 410, "reason": "Unregistered"}

ODD_TIMES: list[object] = [1.5, 10**30, "soon", None, [1]]
ODD_TEXTS: list[object] = [None, 7, {}]
ODD_DETAILS: list[object] = [None, {}, "x", [None, 7]]
ANSWERS: list[tuple[str, dict[str, Any], type[Outcome]]] = [
    *(("apns", DEAD | {"fields": {"timestamp": odd}}, Gone) for odd in ODD_TIMES),
    ("apns", {"status": 410, "body": " "}, Gone),
    ("apns", {"status": 413, "body": "<html>"}, Refused),
    ("apns", {"status": 204, "accept": True, "body": " "}, Taken),
    *(("fcm", UNREGISTERED | {"fields": {"error": {"message": odd}}}, Gone) for odd in ODD_TEXTS),
    ("fcm", UNREGISTERED | {"fields": {"error": {"code": "x", "status": 5}}}, Gone),
    *(("fcm", INVALID | {"fields": {"error": {"details": odd}}}, Refused) for odd in ODD_DETAILS),
    ("webpush", {"status": 204, "accept": True}, Taken),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("where", "fault", "expected"), ANSWERS)
async def test_an_odd_field_or_none_at_all_leaves_the_verdict(
    lab: Lab,
    apns: ApnsSender,
    fcm: FcmSender,
    webpush: WebPushSender,
    where: str,
    fault: dict[str, Any],
    expected: type[Outcome],
) -> None:
    senders: dict[str, Sender] = {"apns": apns, "fcm": fcm, "webpush": webpush}
    await lab.script(script({"where": where, "do": {"answer": fault}}))
    assert isinstance(await outcome(senders[where], TO[where](lab)), expected)


@pytest.mark.asyncio
@pytest.mark.parametrize("expires_in", [0, -5, "soon"])
async def test_an_access_token_with_an_odd_life_is_used(
    lab: Lab, fcm_settings: FcmSettings, expires_in: object
) -> None:
    fault = {"status": 200, "accept": True, "fields": {"expires_in": expires_in}}
    await lab.script(script({"where": "oauth", "do": {"answer": fault}}))
    sender = FcmSender(CredentialId.of(AppId("demo"), "fcm"), fcm_settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    for _ in range(2):
        assert isinstance(await outcome(sender, to_android(lab)), Taken)
    await sender.stop(1)
    assert lab.records.counts["oauth"].accepted == 1


class TestNeedsLength:
    """Servers that answer 411 to a body without content-length, as lighttpd does."""

    @pytest.fixture
    def lab_settings(self, lab_settings: LabSettings) -> LabSettings:
        """As the others, with the setting."""
        return msgspec.structs.replace(lab_settings, needs_length=True)

    @pytest.mark.asyncio
    async def test_every_sender_says_how_long_its_body_is(
        self, lab: Lab, apns: ApnsSender, fcm: FcmSender, webpush: WebPushSender
    ) -> None:
        senders: dict[str, Sender] = {"apns": apns, "fcm": fcm, "webpush": webpush}
        for name, sender in senders.items():
            assert isinstance(await outcome(sender, TO[name](lab)), Taken)
