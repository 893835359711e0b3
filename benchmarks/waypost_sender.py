"""Sends with one of Waypost's own senders: `python -m benchmarks.waypost_sender ORDER CHANNEL`."""

from __future__ import annotations

import asyncio
import base64
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.deliveries import device, first_attempts
from waypost.bench.registry import APP
from waypost.bootstrap.interpreter import share_the_interpreter
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.webpush.sender import WebPushSender
from waypost.channels.webpush.settings import WebPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Device, SubscriptionKeys
from waypost.domain.ids import AppId
from waypost.domain.outcome import Outcome, Taken
from waypost.ports.sender import Sender
from waypost.runtime.clock import SystemClock
from waypost.telemetry.sink import Silent

WARM_UP = 100
BATCH = 50
"""Given to the sender at once, as a lane does."""


def _sender(channel: str, wanted: dict[str, Any]) -> Sender:
    clock, telemetry = SystemClock(), Silent()
    endpoint, ca_file = wanted["url"], wanted["ca_file"]
    match channel:
        case "apns":
            named = {"key_file": wanted["apns_key_file"], "key_id": "ABCDE12345", "team_id": "FGHIJ67890"}
            apns = ApnsSettings(**named, topic="com.example.demo", endpoint=endpoint, ca_file=ca_file)
            return ApnsSender(CredentialId.of(AppId(APP), "apns"), apns, clock=clock, telemetry=telemetry)
        case "fcm":
            account = wanted["service_account_file"]
            fcm = FcmSettings(
                service_account_file=account,
                endpoint=endpoint,
                ca_file=ca_file,
            )
            return FcmSender(CredentialId.of(AppId(APP), "fcm"), fcm, clock=clock, telemetry=telemetry)
        case _:
            push = WebPushSettings(
                vapid_private_key_file=wanted["vapid_key_file"],
                subject="mailto:ops@example.com",
                allow_endpoints=(endpoint,),
                ca_file=ca_file,
            )
            return WebPushSender(CredentialId.of(AppId(APP), "webpush"), push, clock=clock, telemetry=telemetry)


def _devices(channel: str, wanted: dict[str, Any]) -> list[Device]:
    """Make the devices ahead, as the others read their tokens."""
    if channel == "webpush":
        subscriptions = [_subscription(each) for each in wanted["subscriptions"]]
        return [device(n, "web", endpoint, keys) for n, (endpoint, keys) in enumerate(subscriptions)]
    platform = "ios" if channel == "apns" else "android"
    return [device(n, platform, token) for n, token in enumerate(wanted["tokens"])]


def _subscription(named: dict[str, Any]) -> tuple[str, SubscriptionKeys]:
    """Read a subscription as a registration does: the store has the keys as bytes."""
    point, auth = (base64.urlsafe_b64decode(named["keys"][key] + "==") for key in ("p256dh", "auth"))
    return named["endpoint"], SubscriptionKeys(point, auth)


async def _run(sender: Sender, devices: list[Device], in_flight: int, first: int, count: int) -> None:
    """Keep so many in flight until all were taken."""
    channel = sender.capabilities.channel
    done = asyncio.get_running_loop().create_future()
    begun = ended = 0

    def begin(many: int) -> None:
        nonlocal begun
        many = min(many, count - begun)
        batch = first_attempts(channel, devices, first + begun, many)
        begun += many
        sender.send(batch, report)

    def report(_: Delivery, outcome: Outcome) -> None:
        nonlocal ended
        if not isinstance(outcome, Taken):
            raise SystemExit(f"not taken: {outcome}")
        ended += 1
        if ended == count:
            done.set_result(None)
        elif ended % BATCH == 0 and begun < count:
            begin(BATCH)

    begin(in_flight)
    await done


async def main(wanted: dict[str, Any], channel: str) -> None:
    """As drive.py does it for the others."""
    devices, in_flight = _devices(channel, wanted), wanted["in_flight"]
    sender = _sender(channel, wanted)
    await sender.start()
    share_the_interpreter()  # as a worker does
    await _run(sender, devices, in_flight, 0, WARM_UP)
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    await _run(sender, devices, in_flight, WARM_UP, wanted["count"])
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"seconds": seconds, "cpu_s": spent}))
    await sender.stop(10)


if __name__ == "__main__":
    uvloop.run(main(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]))
