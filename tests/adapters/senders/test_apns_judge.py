"""A gateway that nobody here wrote takes what we send to Apple: the validating server of the Java library pushy.

Real TLS and HTTP/2, the provider token's signature verified with the public key. Where it differs from Apple: tokens
must be 64 hexadecimal digits, 4,096 bytes is the limit for VoIP too, widgets and controls are not known to it, it
ignores the expiration and how often a provider token is renewed, and calls a topic that is not the key's
InvalidProviderToken.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.adapters.senders.bench import SystemClock, fresh, outcome, outcomes
from tests.contract.clock import StoppedClock
from tests.tables import AddRow
from tests.unit.adapters.deliveries import delivery
from waypost.bench.kernel import certificate
from waypost.channels.apns.push_types import RULES
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.domain.channel import Channel
from waypost.domain.content import Action, ApnsPushType, Content, Kind, Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.ids import AppId, format_id
from waypost.domain.notification import Notification
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, outcome_name
from waypost.domain.time import HOUR_MS, SECOND_MS, Instant, later
from waypost.telemetry.sink import Silent

HERE = Path(__file__).parent / "judge" / "apns"
JARS = Path(__file__).parents[3] / ".cache" / "judge" / "apns"

TOPIC = "com.example.demo"
FOREIGN_TOPIC = "com.example.other"
KNOWN, STRANGER, DEAD = "a1" * 32, "b2" * 32, "c3" * 32
DIED_AT = Instant(1_699_999_999_123)
UNKNOWN_TO_IT = (ApnsPushType.WIDGETS, ApnsPushType.CONTROLS)
SUFFIXES = {rule.suffix for push_type, rule in RULES.items() if push_type not in UNKNOWN_TO_IT}


class Push(msgspec.Struct, frozen=True):
    """What the judge read of one push."""

    token: str
    topic: str
    push_type: str
    priority: str
    expiration: str
    collapse_id: str
    apns_id: str
    payload: Any


class Judge:
    """The running gateway, and an app's account there."""

    def __init__(self, port: int, settings: ApnsSettings) -> None:
        self.settings = msgspec.structs.replace(settings, endpoint=f"https://localhost:{port}")
        self._taken: asyncio.Queue[Push] = asyncio.Queue()

    async def listen(self, lines: asyncio.StreamReader) -> None:
        """Note what it took until it ends; it would stand still if nobody read."""
        async for line in lines:
            fields = dict(zip(Push.__struct_fields__, line.decode().rstrip("\n").split("\t"), strict=True))
            payload = msgspec.json.decode(b64decode(fields["payload"]))
            self._taken.put_nowait(msgspec.convert(fields | {"payload": payload}, Push))

    async def taken(self) -> Push:
        """The next push that it took."""
        async with asyncio.timeout(60):
            return await self._taken.get()

    def forget(self) -> None:
        """What it took so far is of no interest."""
        while not self._taken.empty():
            self._taken.get_nowait()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running_judge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Judge]:
    """One for all tests; installed once into the cache; skipped where it cannot be, which fails in CI."""
    if not JARS.exists():
        _install()
    tmp_path = tmp_path_factory.mktemp("judge")
    cert_file, key_file = certificate(tmp_path)
    key = new_key(tmp_path / "AuthKey.p8")
    public = tmp_path / "public.pem"
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    topics = " ".join(TOPIC + suffix for suffix in SUFFIXES)
    known = [
        f"server {cert_file} {key_file}",
        f"key KEYID12345 TEAMID1234 {public} {topics}",
        *(f"device {TOPIC}{suffix} {KNOWN}" for suffix in SUFFIXES),
        f"device {FOREIGN_TOPIC} {KNOWN}",
        f"dead {DEAD} {DIED_AT}",
        "start\n",
    ]
    java = ("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", str(HERE / "ApnsJudge.java"))
    process = await asyncio.create_subprocess_exec(*java, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdin.write("\n".join(known).encode())
    port = int(await process.stdout.readline())
    judge = Judge(
        port,
        ApnsSettings(
            key_file=str(tmp_path / "AuthKey.p8"),
            key_id="KEYID12345",
            team_id="TEAMID1234",
            topic=TOPIC,
            ca_file=str(cert_file),
        ),
    )
    listening = asyncio.create_task(judge.listen(process.stdout))
    yield judge
    process.stdin.close()
    await listening
    await process.wait()


@pytest.fixture
def judge(running_judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Before it has heard of anything; a cold machine on a busy computer may take its time to answer."""
    running_judge.forget()
    monkeypatch.setattr("waypost.channels.push.patience.EXPECTED_S", 60.0)
    return running_judge


def _install() -> None:
    JARS.parent.mkdir(parents=True, exist_ok=True)
    maven, compiler = shutil.which("mvn"), shutil.which("javac")
    with tempfile.TemporaryDirectory(dir=JARS.parent) as scratch:
        if maven is not None and compiler is not None:
            copy = ("--quiet", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={scratch}/jars")
            if subprocess.run([maven, "--file", str(HERE / "pom.xml"), *copy], check=False).returncode == 0:
                Path(scratch, "jars").rename(JARS)
                return
    assert os.environ.get("CI") != "true", "pushy cannot be installed"
    pytest.skip("pushy cannot be installed: no Maven, no Java, or no way to Maven's registry")


def new_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """As Apple's developer pages give it out."""
    key = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


async def started(settings: ApnsSettings, clock: StoppedClock | SystemClock | None = None) -> ApnsSender:
    """A sender of these settings."""
    sender = ApnsSender(
        CredentialId.of(AppId("demo"), "apns"), settings, clock=clock or SystemClock(), telemetry=Silent()
    )
    await sender.start()
    return sender


def to(token: str, what: Notification | None = None) -> Delivery:
    """To one device."""
    return delivery(Platform("ios"), token, what or fresh())


def special(push_type: ApnsPushType) -> Notification:
    """The least that may be sent as *push_type*."""
    aps = {"event": "update", "content-state": {"score": 1}} if push_type is ApnsPushType.LIVEACTIVITY else {}
    content = Content(push_type=push_type, data={"a": 1}, overrides={Channel("apns"): {"aps": aps}})
    return fresh(content, kind=push_type.kind)


# what is sent, and the type and priority that the judge must read
TAKEN: dict[str, tuple[Notification, str, str]] = {
    "visible": (fresh(), "ALERT", "IMMEDIATE"),
    "silent": (fresh(Content(data={"sync": 1}), kind=Kind.SILENT), "BACKGROUND", "CONSERVE_POWER"),
    "high": (fresh(urgency=Urgency.HIGH), "ALERT", "IMMEDIATE"),
    "critical": (fresh(urgency=Urgency.CRITICAL), "ALERT", "IMMEDIATE"),
    "low": (fresh(urgency=Urgency.LOW), "ALERT", "CONSERVE_POWER"),
    "silent and high": (fresh(Content(), kind=Kind.SILENT, urgency=Urgency.HIGH), "BACKGROUND", "CONSERVE_POWER"),
    "collapse key": (fresh(Content(title="T", collapse_key="order-7")), "ALERT", "IMMEDIATE"),
    "long collapse key": (fresh(Content(title="T", collapse_key="ä" * 200)), "ALERT", "IMMEDIATE"),
    "now or never": (fresh(ttl_ms=0), "ALERT", "IMMEDIATE"),
    "rich": (
        fresh(
            Content(
                title="Grüße 👩‍👩‍👧", subtitle="S", body="B", data={"order": 7, "o": {"a": [1, None]}}, sound="bell",
                badge=0, image="https://img.example.com/1.png", category="ORDER", thread="orders",
                link="https://example.com/", actions=(Action("open", "Open"),),
                overrides={Channel("apns"): {"aps": {"relevance-score": 0.5}}},
            )
        ),
        "ALERT",
        "IMMEDIATE",
    ),
    "location": (special(ApnsPushType.LOCATION), "LOCATION", "CONSERVE_POWER"),
    "voip": (special(ApnsPushType.VOIP), "VOIP", "IMMEDIATE"),
    "complication": (special(ApnsPushType.COMPLICATION), "COMPLICATION", "CONSERVE_POWER"),
    "file provider": (special(ApnsPushType.FILEPROVIDER), "FILEPROVIDER", "CONSERVE_POWER"),
    "live activity": (special(ApnsPushType.LIVEACTIVITY), "LIVE_ACTIVITY", "CONSERVE_POWER"),
    "push to talk": (special(ApnsPushType.PUSHTOTALK), "PUSH_TO_TALK", "IMMEDIATE"),
}  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
async def test_everything_we_send_is_taken_and_read_as_it_was_meant(judge: Judge, table: AddRow) -> None:
    sender = await started(judge.settings)
    for name, (what, push_type, priority) in TAKEN.items():
        one = to(KNOWN, what)
        got = await outcome(sender, one)
        read = await judge.taken()
        shown = sender.render(one)
        assert isinstance(got, Taken)
        assert got.provider_id
        assert (read.token, read.topic) == (KNOWN, shown.headers["apns-topic"])
        assert (read.push_type, read.priority) == (push_type, priority)
        assert read.expiration == expiration_of(what)
        assert read.collapse_id == shown.headers.get("apns-collapse-id", "null")
        assert read.payload == msgspec.json.decode(shown.body)
        assert read.payload["waypost_id"] == format_id(what.id)
        table("pushy's validating APNs server", sent=name, topic=read.topic, type=push_type, priority=priority)
    await sender.stop(1)


@pytest.mark.asyncio(loop_scope="module")
async def test_two_hundred_at_once_are_taken_each_once(judge: Judge) -> None:
    sender = await started(judge.settings)
    sent = [to(KNOWN) for _ in range(200)]
    assert all(isinstance(got, Taken) for got in await outcomes(sender, sent))
    read = [(await judge.taken()).payload["waypost_id"] for _ in sent]
    assert sorted(read) == sorted(format_id(one.id) for one in sent)
    await sender.stop(1)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_longest_that_apple_takes_is_taken_and_a_byte_more_is_never_sent(judge: Judge) -> None:
    sender = await started(judge.settings)
    empty = sender.render(to(KNOWN, fresh(Content(body="x")))).size_bytes - 1
    for size, kind in ((4096, Taken), (4097, Refused)):
        one = to(KNOWN, fresh(Content(body="x" * (size - empty))))
        assert sender.render(one).size_bytes == size
        assert isinstance(await outcome(sender, one), kind)
    assert len((await judge.taken()).payload["aps"]["alert"]["body"]) == 4096 - empty
    longer = fresh(Content(push_type=ApnsPushType.VOIP, data={"x": "x" * 4096}))
    got = await outcome(sender, to(KNOWN, longer))  # Apple takes 5,120 bytes; the judge does not
    assert isinstance(got, Refused)
    assert got.code == "PayloadTooLarge"
    await sender.stop(1)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_it_refuses_we_read_as_it_means(judge: Judge, tmp_path: Path, table: AddRow) -> None:
    own = judge.settings
    other_key = str(tmp_path / "other.p8")
    new_key(Path(other_key))
    two_hours_late = StoppedClock(later(SystemClock().now(), -2 * HOUR_MS))
    rows: list[tuple[str, ApnsSettings, StoppedClock | None, str, type[Outcome], str]] = [
        ("a token of another app", own, None, STRANGER, Refused, "DeviceTokenNotForTopic"),
        ("no token", own, None, "xyz", Refused, "BadDeviceToken"),
        ("a dead token", own, None, DEAD, Gone, "Unregistered"),
        ("another topic", replaced(own, topic=FOREIGN_TOPIC), None, KNOWN, CredentialRejected, "InvalidProviderToken"),
        ("an unknown id", replaced(own, key_id="KEYID00000"), None, KNOWN, CredentialRejected, "InvalidProviderToken"),
        ("another team", replaced(own, team_id="TEAMID0000"), None, KNOWN, CredentialRejected, "InvalidProviderToken"),
        ("another key", replaced(own, key_file=other_key), None, KNOWN, CredentialRejected, "InvalidProviderToken"),
        ("a clock two hours late", own, two_hours_late, KNOWN, CredentialRejected, "ExpiredProviderToken"),
    ]  # fmt: skip
    got = await asyncio.gather(*(one_outcome(settings, clock, token) for _, settings, clock, token, _, _ in rows))
    for (name, _, _, _, kind, code), refused in zip(rows, got, strict=True):
        assert isinstance(refused, kind), name
        assert not isinstance(refused, Taken)
        assert refused.code == code
        if isinstance(refused, Gone):
            assert refused.since == DIED_AT
        table("what pushy's server refuses", sent=name, outcome=outcome_name(kind), code=code)


async def one_outcome(settings: ApnsSettings, clock: StoppedClock | None, token: str) -> Outcome:
    """What one push came to, from a sender of its own."""
    sender = await started(settings, clock)
    got = await outcome(sender, to(token))
    await sender.stop(1)
    return got


def replaced(settings: ApnsSettings, **fields: str) -> ApnsSettings:
    """*settings* with others in their place."""
    return msgspec.structs.replace(settings, **fields)


def expiration_of(what: Notification) -> str:
    """As Java writes an instant."""
    if what.ttl_ms == 0:
        return "1970-01-01T00:00:00Z"
    at = dt.datetime.fromtimestamp(what.expires_at // SECOND_MS, dt.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
