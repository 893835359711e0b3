"""Google's own published schema of FCM takes everything we send, and would refuse what it should.

The schema comes with the package google-api-python-client: fetched once into the cache, read, never installed. It knows
every field that we send, ``fid`` too.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.adapters.senders.judge.discovery import Discovery
from tests.tables import AddRow
from tests.unit.adapters.deliveries import ANDROID_TOKEN, NOW, notification
from waypost.channels.fcm.payload import Rendering, faults, rendered
from waypost.channels.fcm.settings import CHANNEL, FcmSettings
from waypost.domain.audience import Audience
from waypost.domain.channel import Channel
from waypost.domain.content import Action, Content, Kind, Urgency
from waypost.domain.message import message_of, rendered_for
from waypost.domain.notification import Notification
from waypost.domain.time import DAY_MS, HOUR_MS

PINS = Path(__file__).parent / "judge" / "requirements.txt"
CACHE = Path(__file__).parents[3] / ".cache" / "judge" / "fcm"
SCHEMA = "googleapiclient/discovery_cache/documents/fcm.v1.json"
IMAGE = "https://img.example.com/1.png"


@pytest.fixture(scope="module")
def google() -> Discovery:
    """The published schema; skipped where it cannot be fetched, which fails in CI."""
    file = CACHE / f"{hashlib.sha256(PINS.read_bytes()).hexdigest()[:16]}.json"
    if not file.exists():
        _fetch(file)
    return Discovery(msgspec.json.decode(file.read_bytes()))


def _fetch(file: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", scratch]
        if subprocess.run([*pip, "--requirement", str(PINS)], check=False).returncode:
            assert os.environ.get("CI") != "true", "google-api-python-client cannot be fetched"
            pytest.skip("google-api-python-client cannot be fetched: no way to its registry")
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            unfinished = Path(scratch) / file.name
            unfinished.write_bytes(package.read(SCHEMA))
        unfinished.rename(file)


def overridden(**message: Any) -> Content:
    """A title, and what only FCM is told."""
    return Content(title="T", overrides={Channel("fcm"): message})


ANDROID_SHOWS = {
    "color": "#FF0000",
    "click_action": "OPEN",
    "tag": "order-7",
    "event_time": "2026-11-21T10:00:00.5Z",
    "vibrate_timings": ["0.5s", "1s"],
    "light_settings": {
        "color": {"red": 1, "green": 0.5, "blue": 0, "alpha": 1.0},
        "light_on_duration": "1s",
        "light_off_duration": "0.25s",
    },
    "body_loc_key": "order",
    "body_loc_args": ["7"],
    "notification_priority": "PRIORITY_MAX",
    "visibility": "SECRET",
    "proxy": "DENY",
    "sticky": True,
}
SENT: dict[str, Notification] = {
    "visible": notification(),
    "a title alone": notification(Content(title="T")),
    "silent": notification(Content(data={"sync": 1}), kind=Kind.SILENT),
    "silent, nothing said": notification(Content(), kind=Kind.SILENT),
    "data of every kind": notification(
        Content(title="T", data={"s": "x", "i": 7, "f": 1.5, "b": True, "n": None, "l": [1, "a"], "o": {"a": {"b": 1}}})
    ),
    "text of every kind": notification(Content(title="Grüße 👩‍👩‍👧", body='"\\\n\u2028\x00', data={"ключ": "値"})),
    "image, link, icon": notification(
        Content(title="T", image=IMAGE, link="https://example.com/", icon="https://img.example.com/i.png")
    ),
    "icon of the app": notification(
        Content(title="T", icon="ic_bell", android_channel="orders", sound="bell", badge=3)
    ),
    "actions": notification(
        Content(
            title="T", actions=(Action("open", "Open", link="https://example.com/"), Action("no", "No", icon=IMAGE))
        )
    ),
    "subtitle, category, thread": notification(Content(title="T", subtitle="S", category="ORDER", thread="orders")),
    "badge 0": notification(Content(title="T", badge=0)),
    "collapse key": notification(Content(title="T", collapse_key="order-7")),
    "ttl 0": notification(ttl_ms=0),
    "ttl under a second": notification(ttl_ms=1),
    "ttl over Google's longest": notification(ttl_ms=40 * DAY_MS),
    "ttl of an hour": notification(ttl_ms=HOUR_MS),
    **{f"urgency {urgency}": notification(urgency=urgency) for urgency in Urgency},
    "override of Android": notification(
        overridden(
            android={
                "notification": ANDROID_SHOWS,
                "restricted_package_name": "com.example",
                "direct_boot_ok": True,
                "bandwidth_constrained_ok": True,
                "data": {"layout": "custom"},
            }
        )
    ),
    "override of data": notification(overridden(data={"layout": "custom", "progress": {"now": 3, "of": 10}})),
    "override of Apple and browsers": notification(
        overridden(
            apns={"headers": {"apns-priority": "5"}, "payload": {"aps": {"badge": 1}}},
            webpush={"headers": {"Urgency": "high"}, "fcm_options": {"link": "https://example.com/"}},
        )
    ),
    "override of options": notification(overridden(fcm_options={"analytics_label": "autumn"})),
    "silent with an override": notification(
        Content(data={"a": 1}, overrides={Channel("fcm"): {"android": {"direct_boot_ok": True}}}), kind=Kind.SILENT
    ),
}


def rendering(what: Notification) -> Rendering:
    """As the sender renders it; what is tried here is nothing that intake would refuse."""
    assert not faults(what.content, what.kind)
    got = rendered(rendered_for(message_of(what), CHANNEL), NOW, FcmSettings(service_account_file=""))
    assert isinstance(got, Rendering)
    return got


def bodies(what: Notification) -> dict[str, bytes]:
    """The body of the request in every way of naming the recipient."""
    made = rendering(what)
    return {
        "token": made.body(ANDROID_TOKEN, what.id),
        "fid": made.body("fid:cGVuZ3VpbnMtYXJlLW5pY2U", what.id),
        "topic": _to_all(what, "topic", "news"),
        "condition": _to_all(what, "condition", "'a' in topics && 'b' in topics"),
        "dry run": made.body(ANDROID_TOKEN, what.id, validate_only=True),
    }


def _to_all(what: Notification, kind: str, name: str) -> bytes:
    to = Audience(CHANNEL, kind, name)
    return rendering(replace(what, content=replace(what.content, to=to))).body(name, what.id)


@pytest.mark.parametrize("name", SENT)
def test_the_published_schema_takes_everything_we_send(google: Discovery, name: str, table: AddRow) -> None:
    made = bodies(SENT[name])
    for body in made.values():
        assert google.faults("SendMessageRequest", msgspec.json.decode(body)) == []
    table("FCM's published schema", notification=name, revision=google.revision, taken=", ".join(made))


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ({"tokn": "x"}, "message.tokn is unknown"),
        ({"data": {"order": 7}}, "message.data.order is no string"),
        ({"data": None}, "message.data is no object"),
        ({"android": {"ttl": "1 s"}}, "message.android.ttl is no duration"),
        ({"android": {"ttl": 60}}, "message.android.ttl is no string"),
        ({"android": {"priority": "high"}}, "message.android.priority is none of NORMAL, HIGH"),
        ({"android": {"notification": {"badge": 1}}}, "message.android.notification.badge is unknown"),
        (
            {"android": {"notification": {"notification_count": True}}},
            "message.android.notification.notification_count is no integer",
        ),
        (
            {"android": {"notification": {"notification_count": 2**31}}},
            "message.android.notification.notification_count is no int32",
        ),
        (
            {"android": {"notification": {"event_time": "noon"}}},
            "message.android.notification.event_time is no time",
        ),
        (
            {"android": {"notification": {"vibrate_timings": ["1s", "soon"]}}},
            "message.android.notification.vibrate_timings[1] is no duration",
        ),
        ({"fcm_options": {}, "fcmOptions": {}}, "message.fcmOptions is given twice"),
    ],
)
def test_the_judge_refuses_what_the_schema_does_not_have(
    google: Discovery, message: dict[str, Any], fault: str
) -> None:
    """It is no judge that takes everything."""
    assert google.faults("SendMessageRequest", {"message": message}) == [f"SendMessageRequest.{fault}"]
