"""A sender from another package: installed beside Waypost, served by it, and never named in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows

ROOT = Path(__file__).parents[3]
MODULE = '''
"""Pages people by leaving slips of paper in a folder."""

import asyncio
import json
from pathlib import Path

from msgspec import Struct

from waypost.domain.errors import Fault
from waypost.domain.outcome import Gone, Taken
from waypost.ports.plugin import SenderPlugin
from waypost.ports.sender import Capabilities, Health, Rendered


class PagerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    folder: str
    """Where the slips are left."""


class PagerSender:
    def __init__(self, credential, settings, means):
        self.credential = credential
        self.capabilities = Capabilities("pager", 1_000, 100, 240)
        self._folder = Path(settings.folder)

    async def start(self):
        self._folder.mkdir(exist_ok=True)

    def send(self, batch, report):
        for delivery in batch:
            asyncio.get_running_loop().call_soon(self._leave, delivery, report)

    def _leave(self, delivery, report):
        if delivery.device.token == "+000":
            report(delivery, Gone("no_such_number"))
            return
        slip = self._folder / f"{delivery.id.hex()}.json"
        slip.write_text(json.dumps({"to": delivery.device.token, "title": delivery.message.content.title}))
        report(delivery, Taken(slip.name))

    def render(self, delivery):
        body = delivery.message.content.title.encode()
        return Rendered({}, body, len(body), 240)

    def health(self):
        return Health(ok=True)

    async def stop(self, timeout_s):
        pass


def check_content(content, kind):
    return [Fault("title", "a pager shows 20 characters")] if len(content.title or "") > 20 else []


def check_registration(app, settings):
    return lambda said: [] if said.token.startswith("+") else [Fault("token", "a number begins with +")]


PLUGIN = SenderPlugin(
    channel="pager",
    title="Pager",
    platforms=("pager",),
    settings=PagerSettings,
    build=PagerSender,
    content_check=check_content,
    registration_check=check_registration,
)
'''

PLAIN_MODULE = '''
"""A mock provider, asked as others' plug-ins are: its answers are `{success, error: {message, retryable}}`."""

from msgspec import Struct

from waypost.ports.courier import PlainAnswer, PlainError
from waypost.ports.plugin import SenderPlugin
from waypost.ports.sender import Capabilities, Rendered
from waypost.runtime.courier_sender import CourierSender


class MockSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class MockCourier:
    async def start(self):
        pass

    async def deliver(self, delivery):
        match delivery.device.token, delivery.attempt:
            case ("busy", 1):
                return PlainAnswer(success=False, error=PlainError(message="try later", retryable=True))
            case ("unknown", _):
                return PlainAnswer(success=False, error=PlainError(message="nobody is there", retryable=False))
            case ("broken", 1):
                raise RuntimeError(delivery.device.token)
        return PlainAnswer(success=True, id=f"{delivery.device.token}-{delivery.attempt}")

    def render(self, delivery):
        body = delivery.message.content.title.encode()
        return Rendered({}, body, len(body), 240)

    async def stop(self):
        pass


def build(credential, settings, means):
    return CourierSender(credential, MockCourier(), Capabilities("mock", 1_000, 100, 240), telemetry=means.telemetry)


PLUGIN = SenderPlugin(channel="mock", title="Mock", platforms=("mock",), settings=MockSettings, build=build)
'''


def install(folder: Path, module: str = MODULE, channel: str = "pager") -> Path:
    """A distribution as an installer leaves it: the package, and its metadata with the entry point."""
    package, metadata = folder / f"acme_{channel}", folder / f"acme_{channel}-1.0.dist-info"
    package.mkdir(parents=True)
    metadata.mkdir()
    (package / "__init__.py").write_text(module)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{channel}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[waypost.senders]\n{channel} = acme_{channel}:PLUGIN\n")
    return folder


@shows("S4-22")
@pytest.mark.asyncio
async def test_a_plug_in_is_configured_registered_with_sent_through_and_accounted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a real service; nothing of Waypost was changed for it."""
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site")))
    slips = tmp_path / "slips"
    async with running(tmp_path, workers=1, app={"pager": {"folder": str(slips)}}) as service:
        status, said = await service.ask("PUT", "/v1/devices/ann/pager", {"platform": "pager", "token": "4930"})
        assert (status, said["faults"]) == (400, [{"path": "token", "why": "a number begins with +"}])
        status, said = await service.ask("PUT", "/v1/devices/ann/pager", {"platform": "beeper", "token": "+49"})
        known = "android, email, ios, ios_fcm, pager, phone, unifiedpush, url, web, web_fcm"
        assert said["faults"][0]["why"] == f"must be one of {known}"
        assert (await service.ask("PUT", "/v1/devices/ann/pager", {"platform": "pager", "token": "+4930"}))[0] == 201
        assert (await service.ask("PUT", "/v1/devices/bob/pager", {"platform": "pager", "token": "+000"}))[0] == 201
        status, said = await service.ask("POST", "/v1/notifications", {"user_id": "ann", "title": "x" * 21})
        assert (status, said["faults"][0]["why"]) == (400, "a pager shows 20 characters")

        receipt = await _told(service, "ann")
        assert (receipt["channel"], receipt["status"]) == ("pager", "sent")
        slip = json.loads((slips / receipt["provider_id"]).read_text())
        assert slip == {"to": "+4930", "title": "Call home"}
        gone = await _told(service, "bob")
        assert (gone["status"], gone["code"], gone["reason"]) == ("failed", "no_such_number", "gone")

        document = (await service.ask("GET", "/openapi.json"))[1]["components"]["schemas"]
        assert "pager" in document["Platform"]["enum"]
        assert "pager" in document["Channel"]["enum"]
        assert (await service.ask("GET", "/health/ready"))[1]["checks"]["provider demo/pager"] == "ok"
        checked = _waypost("check-config", "--config", str(service.config_path), "--json")
        assert json.loads(checked.stdout)["credentials"]["demo/pager"] is None
        assert "`apps.<app>.pager.folder`" in _waypost("check-config", "--settings").stdout


@shows("S4-22")
@pytest.mark.asyncio
async def test_the_plain_answers_of_a_mock_plug_in_are_what_the_processor_goes_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a real service, which knows nothing of it: taken, refused for good, tried again, and tried after a bug."""
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site", PLAIN_MODULE, "mock")))
    prompt = {"default": {"max_retries": 5, "base_ms": 10, "cap_ms": 20, "jitter": "full"}}
    async with running(tmp_path, workers=1, app={"mock": {}, "retry": prompt}) as service:
        told = {}
        for token in ("well", "unknown", "busy", "broken"):
            assert (await service.ask("PUT", f"/v1/devices/{token}/d", {"platform": "mock", "token": token}))[0] == 201
            told[token] = await _told(service, token)
    assert (told["well"]["status"], told["well"]["provider_id"]) == ("sent", "well-1")
    refused = told["unknown"]
    assert (refused["status"], refused["code"], len(refused["attempts"])) == ("failed", "provider_error", 1)
    assert refused["attempts"][0]["message"] == "nobody is there"
    assert (told["busy"]["status"], told["busy"]["provider_id"]) == ("sent", "busy-2")
    assert told["busy"]["attempts"][0]["message"] == "try later"
    assert (told["broken"]["status"], told["broken"]["provider_id"]) == ("sent", "broken-2")
    assert told["broken"]["attempts"][0]["message"] == "the sender failed with RuntimeError"


def test_a_plug_in_that_cannot_be_loaded_stops_the_start_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site", "import nowhere_to_be_found\n")))
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {}}\nlisten: 127.0.0.1:0\n")
    ended = _waypost("serve", "--config", str(tmp_path / "waypost.yaml"))
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(
        "waypost: configuration: plug-in pager (acme_pager:PLUGIN): cannot be loaded: ModuleNotFound"
    )


def test_a_plug_in_whose_sender_says_it_is_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its receipts would stand under a channel that is not its own."""
    module = MODULE.replace('Capabilities("pager",', 'Capabilities("apns",')
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site", module)))
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {pager: {folder: slips}}}\n")
    ended = _waypost("check-config", "--config", str(tmp_path / "waypost.yaml"))
    assert ended.returncode == 1
    assert ended.stderr == "waypost: configuration: plug-in pager: its sender is not that of demo/pager\n"


@shows("S4-22")
def test_a_sender_of_ours_is_its_folder_its_side_in_the_lab_and_three_lines_of_metadata() -> None:
    """What proves that one more needs no change elsewhere: nothing else in the source knows that there is this one."""
    name = "unified" + "push"
    source = ROOT / "src" / "waypost"
    naming = {
        path.relative_to(source).parts[:2]
        for path in source.rglob("*.py")
        if name in path.read_text().lower() or name in str(path.relative_to(source))
    }
    assert naming == {("channels", name), ("lab", f"{name}.py")}
    lines = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if name in line]
    assert len(lines) == 3, "two entry points, and its place in the import contract of channels"


async def _told(service: Service, user: str) -> Json:
    """The receipt of a notification to *user*, once it is final."""
    status, said = await service.ask("POST", "/v1/notifications", {"user_id": user, "title": "Call home"})
    assert status == 202

    async def finished() -> Json | None:
        detail = (await service.ask("GET", f"/v1/notifications/{said['id']}"))[1]
        return detail if detail["notification"]["finished_at"] else None

    (receipt,) = (await until(finished, f"what {user} was told"))["receipts"]
    found: Json = receipt
    return found


def _waypost(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    return subprocess.run(
        [sys.executable, "-m", "waypost.cli", *arguments], capture_output=True, text=True, check=False, env=environ
    )
