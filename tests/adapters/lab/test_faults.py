"""Every fault the script can order happens as ordered, and the record tells accepted from refused."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from h2.events import ConnectionTerminated, PingAckReceived, RemoteSettingsChanged, ResponseReceived

from tests.adapters.lab.senders import ANDROID, TOKEN, Senders
from tests.adapters.lab.test_wire import ALERT, DEVICE, apns_headers, limit_is
from tests.adapters.lab.wire import Wire
from waypost.lab import Lab, LabSettings

pytestmark = pytest.mark.asyncio


async def script(senders: Senders, *rules: dict[str, Any]) -> None:
    answer = await senders.admin("POST", "/faults", list(rules))
    assert "error" not in answer, answer


async def opened(senders: Senders, lab: Lab) -> Wire:
    """An APNs connection that may carry many streams."""
    wire = await Wire.dial(lab.urls.apns, lab.settings.directory)
    assert await wire.answer(wire.send(DEVICE, apns_headers(senders), ALERT)) == 200
    await wire.until(RemoteSettingsChanged, limit_is(1000))
    return wire


def accepted(lab: Lab) -> int:
    return lab.records.counts["apns"].accepted


async def test_a_scripted_answer_speaks_each_gateways_language(senders: Senders) -> None:
    subscription = await senders.subscription()
    await senders.fcm()
    await script(
        senders,
        {"where": "apns", "do": {"answer": {"status": 429, "reason": "TooManyRequests", "retry_after": 7}}},
        {"where": "fcm", "do": {"answer": {"status": 503, "reason": "UNAVAILABLE", "retry_after_date_s": 9}}},
        {"where": "webpush", "do": {"answer": {"status": 429, "reason": "slow down", "headers": {"X-A": "b"}}}},
        {"where": "oauth", "do": {"answer": {"status": 500, "reason": "internal_failure"}}},
    )
    apns, fcm = await senders.apns(), await senders.fcm()
    webpush, oauth = await senders.webpush(subscription), await senders.oauth()
    assert (apns.status_code, apns.json(), apns.headers["retry-after"]) == (429, {"reason": "TooManyRequests"}, "7")
    assert (fcm.status_code, fcm.json()["error"]["details"][0]["errorCode"]) == (503, "UNAVAILABLE")
    assert fcm.headers["retry-after"].endswith("GMT")
    assert (webpush.status_code, webpush.text, webpush.headers["x-a"]) == (429, "slow down", "b")
    assert (oauth.status_code, oauth.json()["error"]) == (500, "internal_failure")
    counts = await senders.admin("GET", "/counts")
    assert (counts["apns"]["accepted"], counts["apns"]["reasons"]) == (0, {"TooManyRequests": 1})


async def test_an_html_502_can_be_ordered(senders: Senders) -> None:
    await script(senders, {"where": "fcm", "do": {"answer": {"status": 502, "body": "<html>Bad Gateway</html>"}}})
    answer = await senders.fcm()
    assert (answer.status_code, answer.text) == (502, "<html>Bad Gateway</html>")
    assert answer.headers["content-type"].startswith("text/html")


async def test_an_answer_can_fail_after_the_message_was_taken(senders: Senders, lab: Lab) -> None:
    await script(senders, {"do": {"answer": {"status": 500, "reason": "InternalServerError", "accept": True}}})
    assert (await senders.apns()).status_code == 500
    (record,) = (await senders.admin("GET", "/received"))["received"]
    assert (record["accepted"], record["status"]) == (True, 500)


async def test_tokens_die_by_rule(senders: Senders) -> None:
    await senders.fcm()
    await script(senders, {"do": {"gone": {"at_ms": 5, "reason": "ExpiredToken"}}})
    apns, fcm = await senders.apns(), await senders.fcm()
    push = await senders.webpush(await senders.subscription())
    assert (apns.status_code, apns.json()) == (410, {"reason": "ExpiredToken", "timestamp": 5})
    assert (fcm.status_code, fcm.json()["error"]["details"][0]["errorCode"]) == (404, "UNREGISTERED")
    assert push.status_code == 410


async def test_rules_match_by_token_prefix_share_after_and_times(senders: Senders) -> None:
    down: dict[str, Any] = {"answer": {"status": 503, "reason": "ServiceUnavailable"}}
    tokens = [f"{number:064x}" for number in range(40)]

    async def statuses(match: dict[str, Any], used: list[str]) -> list[int]:
        await script(senders, {"where": "apns", "match": match, "do": down})
        return [(await senders.apns(token=token)).status_code for token in used]

    assert await statuses({"token": tokens[1]}, tokens[:3]) == [200, 503, 200]
    assert await statuses({"token_prefix": "ab"}, [TOKEN, tokens[0]]) == [503, 200]
    assert await statuses({"after": 1, "times": 2}, tokens[:5]) == [200, 503, 503, 200, 200]
    share = await statuses({"share": 0.5}, tokens)
    assert share == await statuses({"share": 0.5}, tokens)
    assert 5 < share.count(503) < 35
    assert set(await statuses({"probability": 0.5}, tokens)) == {200, 503}
    shown = await senders.admin("GET", "/faults")
    assert shown["rules"] == [{"where": "apns", "match": {"probability": 0.5}, "do": down}]
    assert 0 < shown["met"][0] < 40
    assert (await senders.admin("DELETE", "/faults"))["rules"] == []


async def test_fcm_rules_match_by_the_token_in_the_message(senders: Senders) -> None:
    await script(senders, {"match": {"token": ANDROID}, "do": {"answer": {"status": 500, "reason": "INTERNAL"}}})
    other = await senders.fcm({"token": "other-installation:APA91b" + "y" * 100})
    assert [(await senders.fcm()).status_code, other.status_code] == [500, 200]


async def test_latency_delays_the_answer_not_the_record(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(senders, {"match": {"times": 1}, "do": {"latency_ms": 100}})
    slow, fast = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 2)
    assert (await wire.answer(fast), await wire.answer(slow)) == (200, 200)
    order = [event.stream_id for event in wire.events if isinstance(event, ResponseReceived)]
    assert order[-2:] == [fast, slow]
    await wire.close()


async def test_rst_resets_the_stream_with_the_code(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(
        senders, {"match": {"times": 1}, "do": {"rst": {}}}, {"match": {"times": 1}, "do": {"rst": {"code": 2}}},
        {"match": {"times": 1}, "do": {"rst": {"code": 8, "accept": True}}},
    )  # fmt: skip
    ids = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 4)
    assert [await wire.answer(stream_id) for stream_id in ids] == [-7, -2, -8, 200]
    assert accepted(lab) == 3
    await wire.close()


@pytest.mark.parametrize(("last_stream", "answered"), [("all", 4), ("half", 2), ("none", 0)])
async def test_goaway_covers_what_it_says_and_drops_the_rest_unprocessed(
    senders: Senders, lab: Lab, last_stream: str, answered: int
) -> None:
    wire = await opened(senders, lab)
    fault = {"last_stream": last_stream, "reason": "Shutdown", "hold_ms": 50}
    await script(senders, {"do": {"goaway": fault}})
    ids = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 4)
    goaway = await wire.until(ConnectionTerminated)
    assert (goaway.error_code, json.loads(goaway.additional_data or b"")) == (0, {"reason": "Shutdown"})
    assert goaway.last_stream_id == ([1, *ids][answered])
    await wire.end()
    assert accepted(lab) == 1 + answered
    assert wire.answered_after_goaway == ids[:answered]


async def test_a_graceful_goaway_announces_before_it_counts(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(senders, {"do": {"goaway": {"graceful": True, "hold_ms": 30}}})
    (stream_id,) = wire.send_all([(DEVICE, apns_headers(senders), ALERT)])
    first = await wire.until(ConnectionTerminated)
    assert first.last_stream_id == 2**31 - 1
    final = await wire.until(ConnectionTerminated, lambda event: event is not first)
    assert final.last_stream_id == stream_id
    await wire.end()
    assert accepted(lab) == 2


@pytest.mark.parametrize(("do", "taken"), [({"drop": True}, 0), ({"accept_then_drop": True}, 1)])
async def test_the_connection_drops_with_or_without_the_message_taken(
    senders: Senders, lab: Lab, do: dict, taken: int
) -> None:
    await script(senders, {"where": "apns", "do": do})
    with pytest.raises(httpx.TransportError):
        await senders.apns()
    assert accepted(lab) == taken


async def test_a_black_hole_swallows_one_request_or_the_whole_connection(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(
        senders,
        {"match": {"times": 1}, "do": {"black_hole": {}}},
        {"match": {"after": 1}, "do": {"black_hole": {"scope": "connection", "accept": True}}},
    )
    swallowed, answered = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 2)
    assert await wire.answer(answered) == 200
    (last,) = wire.send_all([(DEVICE, apns_headers(senders), ALERT)])
    wire.h2.ping(b"12345678")
    wire.flush()
    async with asyncio.timeout(60):
        while accepted(lab) < 3:  # the lab, in this very process, has no more to say than this
            await senders.admin("GET", "/counts")
    spoken_to = {event.stream_id for event in wire.events if isinstance(event, ResponseReceived)}
    assert not spoken_to & {swallowed, last}
    await wire.close()


async def test_a_black_hole_of_streams_swallows_all_requests_and_answers_pings(senders: Senders, lab: Lab) -> None:
    """Also those that come later, and an answer that was on its way when it began."""
    wire = await opened(senders, lab)
    await script(
        senders,
        {"match": {"times": 1}, "do": {"latency_ms": 100}},
        {"match": {"after": 1}, "do": {"black_hole": {"scope": "streams", "accept": True}}},
    )
    swallowed = wire.send_all([(DEVICE, apns_headers(senders), ALERT)] * 3)
    async with asyncio.timeout(60):
        while accepted(lab) < 4:
            await senders.admin("GET", "/counts")
    wire.h2.ping(b"12345678")
    wire.flush()
    await wire.until(PingAckReceived)
    assert not {event.stream_id for event in wire.events if isinstance(event, ResponseReceived)} & set(swallowed)
    await wire.close()


async def test_settings_change_in_the_middle_of_a_connection(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(senders, {"match": {"times": 1}, "do": {"settings": {"max_concurrent_streams": 10}}})
    assert await wire.answer(wire.send(DEVICE, apns_headers(senders), ALERT)) == 200
    await wire.until(RemoteSettingsChanged, limit_is(10))
    await wire.close()


async def test_exceeding_an_acknowledged_limit_is_a_counted_violation(senders: Senders, lab: Lab) -> None:
    wire = await opened(senders, lab)
    await script(
        senders,
        {"match": {"times": 1}, "do": {"settings": {"max_concurrent_streams": 1}}},
        {"do": {"black_hole": {}}},
    )
    wire.events.clear()
    wire.send(DEVICE, apns_headers(senders), ALERT)
    await wire.until(RemoteSettingsChanged, limit_is(1))
    wire.h2.remote_settings.update({3: 1000})  # a client that does not heed the change
    wire.h2.remote_settings.acknowledge()
    assert await wire.answer(wire.send(DEVICE, apns_headers(senders), ALERT)) == -7
    assert lab.records.counts["apns"].violations["too many streams"] == 1
    await wire.close()


async def test_a_slow_reader_still_answers(senders: Senders) -> None:
    await script(senders, {"match": {"times": 1}, "do": {"slow_reader": {"pause_ms": 30}}})
    assert [(await senders.apns()).status_code for _ in range(2)] == [200, 200]


async def test_connections_are_refused_until_the_rule_goes(senders: Senders, lab: Lab) -> None:
    await script(senders, {"where": "fcm", "do": {"refuse_connections": True}})
    with pytest.raises(ConnectionRefusedError):
        await Wire.dial(lab.urls.fcm, lab.settings.directory)
    await senders.admin("DELETE", "/faults")
    assert (await senders.fcm()).status_code == 200


async def test_the_tls_handshake_fails_as_often_as_ordered(senders: Senders, lab: Lab) -> None:
    await script(senders, {"where": "apns", "match": {"times": 1}, "do": {"tls_fail": True}})
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        await Wire.dial(lab.urls.apns, lab.settings.directory)
    assert (await senders.apns()).status_code == 200


async def test_the_token_endpoint_obeys_the_script_over_http_1_1(senders: Senders, lab: Lab) -> None:
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    async with httpx.AsyncClient(verify=context) as client:
        old = Senders(client, lab.urls, lab.settings.directory)
        await script(
            senders, {"where": "oauth", "match": {"times": 1}, "do": {"drop": True}},
            {"where": "oauth", "do": {"latency_ms": 1}},
        )  # fmt: skip
        with pytest.raises(httpx.TransportError):
            await old.oauth()
        assert (await old.oauth()).status_code == 200


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"do": {}}, "exactly one"),
        ({"do": {"drop": True, "latency_ms": 1}}, "exactly one"),
        ({"do": {"explode": True}}, "explode"),
        ({"where": "sms", "do": {"drop": True}}, "where"),
        ({"match": {"share": 0.5}, "do": {"tls_fail": True}}, "no token"),
        ({"match": {"times": 1}, "do": {"refuse_connections": True}}, "no match"),
    ],
)
async def test_a_wrong_rule_is_refused_with_the_reason_and_changes_nothing(
    senders: Senders, rule: dict, says: str
) -> None:
    answer = await senders.admin("POST", "/faults", [rule])
    assert says in answer["error"]
    assert (await senders.admin("GET", "/faults"))["rules"] == []


async def test_faults_come_from_a_yaml_file_too(settings: LabSettings, tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(
        "- where: apns\n  match: {share: 0.1}\n  do: {answer: {status: 500, reason: InternalServerError}}\n"
    )
    lab = Lab(msgspec.structs.replace(settings, faults=path))
    await lab.start()
    assert lab.faults.rules[0].match.share == 0.1
    await lab.stop()
