"""What each gateway does below its requests: stream limits, ALPN, PING, idleness, malformed frames."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from h2.events import ConnectionTerminated, RemoteSettingsChanged
from h2.settings import SettingCodes

from tests.adapters.lab.senders import TOKEN, Senders
from tests.adapters.lab.wire import Wire
from waypost.lab import Lab, LabSettings

pytestmark = pytest.mark.asyncio

MAX_STREAMS = SettingCodes.MAX_CONCURRENT_STREAMS
DEVICE = f"/3/device/{TOKEN}"
ALERT = b'{"aps":{"alert":"a"}}'


def apns_headers(senders: Senders) -> dict[str, str]:
    return {
        "authorization": f"bearer {senders.apns_token}", "apns-topic": "com.example.demo", "apns-push-type": "alert",
    }  # fmt: skip


def limit_is(value: int) -> Callable[[RemoteSettingsChanged], bool]:
    def holds(event: RemoteSettingsChanged) -> bool:
        return MAX_STREAMS in event.changed_settings and event.changed_settings[MAX_STREAMS].new_value == value

    return holds


async def test_apns_opens_up_from_one_stream_after_the_first_good_token(senders: Senders, lab: Lab) -> None:
    wire = await Wire.dial(lab.urls.apns, lab.settings.directory)
    await wire.until(RemoteSettingsChanged, limit_is(1))
    refused = await wire.answer(wire.send(DEVICE, {}, ALERT))
    assert refused == 403
    assert await wire.answer(wire.send(DEVICE, apns_headers(senders), ALERT)) == 200
    await wire.until(RemoteSettingsChanged, limit_is(1000))
    await wire.close()


async def test_streams_above_the_limit_are_refused_and_not_processed(senders: Senders, lab: Lab) -> None:
    wire = await Wire.dial(lab.urls.apns, lab.settings.directory)
    first, second = wire.h2.get_next_available_stream_id(), 3
    head = [(":method", "POST"), (":scheme", "https"), (":path", DEVICE), (":authority", "x")]
    wire.h2.send_headers(first, [*head, *apns_headers(senders).items()])
    wire.h2.send_headers(second, [*head, *apns_headers(senders).items()])
    wire.h2.send_data(first, ALERT, end_stream=True)
    wire.flush()
    assert await wire.answer(second) == -7
    assert await wire.answer(first) == 200
    assert lab.records.counts["apns"].accepted == 1
    await wire.close()


async def test_fcm_says_goaway_to_a_client_without_alpn(lab: Lab) -> None:
    wire = await Wire.dial(lab.urls.fcm, lab.settings.directory, alpn=False)
    assert (await wire.until(ConnectionTerminated)).error_code == 1
    await wire.end()


async def test_fcm_needs_an_authority_and_apns_does_not(senders: Senders, lab: Lab) -> None:
    wire = await Wire.dial(lab.urls.fcm, lab.settings.directory)
    assert await wire.answer(wire.send("/v1/projects/lab-project/messages:send", {}, b"{}", authority=None)) == 400
    await wire.close()
    wire = await Wire.dial(lab.urls.apns, lab.settings.directory)
    assert await wire.answer(wire.send(DEVICE, apns_headers(senders), ALERT, authority=None)) == 200
    await wire.close()


async def test_fcm_ends_a_connection_that_pings_three_times_without_a_request(lab: Lab) -> None:
    wire = await Wire.dial(lab.urls.fcm, lab.settings.directory)
    for _ in range(3):
        wire.h2.ping(b"12345678")
    wire.flush()
    goaway = await wire.until(ConnectionTerminated)
    assert (goaway.error_code, goaway.additional_data) == (11, b"too_many_pings")
    await wire.end()


@pytest.mark.parametrize(
    ("idle_s", "max_age_s", "debug"), [(0.05, 3600.0, b"session_timeout"), (240.0, 0.05, b"max_age")]
)
async def test_fcm_ends_idle_and_old_connections(
    settings: LabSettings, idle_s: float, max_age_s: float, debug: bytes
) -> None:
    lab = Lab(msgspec.structs.replace(settings, fcm_idle_s=idle_s, fcm_max_age_s=max_age_s))
    await lab.start()
    wire = await Wire.dial(lab.urls.fcm, lab.settings.directory)
    assert (await wire.until(ConnectionTerminated)).additional_data == debug
    await wire.end()
    await lab.stop()


@pytest.mark.parametrize("header", ["Apns-Topic", "connection", "te"])
async def test_malformed_requests_are_reset_and_counted(senders: Senders, lab: Lab, header: str) -> None:
    wire = await Wire.dial(lab.urls.apns, lab.settings.directory)
    assert await wire.answer(wire.send(DEVICE, {**apns_headers(senders), header: "x"}, ALERT)) == -1
    assert sum(lab.records.counts["apns"].violations.values()) == 1
    await wire.close()


async def test_http_1_1_is_not_spoken_by_apns(lab: Lab) -> None:
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    reader, writer = await asyncio.open_connection(host="127.0.0.1", port=int(lab.urls.apns[-5:]), ssl=context)
    writer.write(b"POST /3/device/x HTTP/1.1\r\nhost: x\r\n\r\n")
    assert not (await reader.read()).startswith(b"HTTP/1.1")
    assert lab.records.counts["apns"].violations
    writer.close()


async def test_credentials_are_kept_and_follow_the_token_endpoint(settings: LabSettings, tmp_path: Path) -> None:
    for _ in range(2):
        before = {name: (tmp_path / name).read_bytes() for name in ("ca.pem", "AuthKey.p8", "vapid.pem")}
        lab = Lab(settings)
        await lab.start()
        await lab.stop()
        assert {name: (tmp_path / name).read_bytes() for name in before} == before
        account = msgspec.json.decode((tmp_path / "fcm.json").read_bytes())
        assert account["token_uri"] == lab.urls.oauth
