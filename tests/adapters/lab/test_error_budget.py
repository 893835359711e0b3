"""Too many errors lower a connection's stream limit and then end it; both as a script says."""

import pytest
from h2.events import RemoteSettingsChanged

from tests.adapters.lab.senders import Senders, provider_token
from tests.adapters.lab.test_faults import opened, script
from tests.adapters.lab.test_wire import ALERT, DEVICE, apns_headers, limit_is
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio
MALFORMED = "/3/device/zz"


async def test_the_stream_limit_sinks_with_errors_and_rises_with_the_next_success(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    wire.events.clear()
    await script(senders, {"where": "apns", "do": {"error_budget": {"lower_after": 2, "lower_to": 10}}})
    bad = {**apns_headers(senders), "apns-priority": "7"}
    assert [await wire.answer(wire.send(DEVICE, bad, ALERT)) for _ in range(2)] == [400, 400]
    await wire.until(RemoteSettingsChanged, limit_is(10))
    assert await wire.answer(wire.send(DEVICE, apns_headers(senders), ALERT)) == 200
    await wire.until(RemoteSettingsChanged, limit_is(1000))
    await wire.close()


@pytest.mark.parametrize(("path", "answers"), [(DEVICE, 4), (MALFORMED, 2)])
async def test_the_connection_drops_behind_the_error_that_is_too_many_sooner_for_bad_tokens(
    senders: Senders, lab: Lab, path: str, answers: int
) -> None:
    wire = await opened(senders, lab)
    await script(senders, {"where": "apns", "do": {"error_budget": {"drop_after": 4}}})
    bad = {**apns_headers(senders), **({"apns-priority": "7"} if path == DEVICE else {})}
    ids = wire.send_all([(path, bad, ALERT)] * answers)
    assert [await wire.answer(stream_id) for stream_id in ids] == [400] * answers
    await wire.end()
    assert wire.closed


async def test_a_dead_token_is_no_error(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(senders, {"do": {"error_budget": {"drop_after": 1}}}, {"do": {"gone": {}}})
    assert [await wire.answer(wire.send(DEVICE, apns_headers(senders), ALERT)) for _ in range(3)] == [410] * 3
    await wire.close()


@pytest.mark.parametrize("reason", ["BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken"])
async def test_both_spellings_of_the_environment_keys_reason(senders: Senders, reason: str) -> None:
    wanted = {"key_id": "KEY2345678", "team_id": "T", "topics": ["com.example.demo"], "environment": "sandbox"}
    key = await senders.admin("POST", "/apns/keys", {**wanted, "environment_reason": reason})
    token = provider_token(key["private_key"], kid="KEY2345678", iss="T")
    assert (await senders.apns({"authorization": f"bearer {token}"})).json() == {"reason": reason}


async def test_a_token_of_one_environment_is_unknown_to_the_other(senders: Senders) -> None:
    made = await senders.admin("POST", "/tokens", {"platform": "ios", "environment": "sandbox"})
    (token,) = made["tokens"]
    assert (await senders.apns(token=token)).json() == {"reason": "BadDeviceToken"}
    senders.urls = type("Urls", (), {"apns": senders.urls.apns_sandbox})
    answer = await senders.apns(token=token)
    assert answer.status_code == 200
    assert answer.headers["apns-unique-id"]


@pytest.mark.parametrize(
    "aps",
    [
        {"event": "update", "timestamp": 1},
        {"event": "update", "content-state": {}},
        {"event": "begin", "timestamp": 1, "content-state": {}},
        {"event": "start", "timestamp": 1, "content-state": {}, "attributes": {}, "alert": {"title": "a"}},
        {"event": "update", "timestamp": 1, "content-state": {}, "input-push-channel": 1},
        {"event": "update", "timestamp": 1, "content-state": {}, "alert": {"title-loc-key": "a"}},
        {"event": "update", "timestamp": 1, "content-state": {}, "alert": {"title": {"loc-args": ["a"]}}},
    ],
)
async def test_live_activity_payloads_that_are_refused(senders: Senders, aps: dict) -> None:
    headers = {"apns-push-type": "liveactivity", "apns-topic": "com.example.demo.push-type.liveactivity"}
    answer = await senders.apns(headers, {"aps": aps})
    assert (answer.status_code, answer.json()["reason"]) in ((400, "BadRequestPayload"), (400, "InvalidPushType"))


async def test_a_live_activity_starts_with_nested_localisation(senders: Senders) -> None:
    headers = {"apns-push-type": "liveactivity", "apns-topic": "com.example.demo.push-type.liveactivity"}
    aps = {
        "event": "start", "timestamp": 1, "content-state": {}, "attributes-type": "Game", "attributes": {},
        "alert": {"title": {"loc-key": "GOAL", "loc-args": ["1"]}, "body": "a"}, "input-push-token": 1,
    }  # fmt: skip
    assert (await senders.apns(headers, {"aps": aps})).status_code == 200
