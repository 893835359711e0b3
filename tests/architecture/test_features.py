"""A feature is a folder and a line in a list: a toy from outside of the package is mounted, and all of it works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.journeys.harness import Service, running, until
from waypost.bootstrap import features
from waypost.bootstrap.registry import load
from waypost.cli import waypost
from waypost.domain.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]
TOY = Path(__file__).with_name("toy")
MOUNTED = f"""
import sys
sys.path.insert(0, {str(TOY)!r})
from greetings import GREETINGS
from waypost.bootstrap import features
features.FEATURES += (GREETINGS,)
"""
"""The line that whoever adds a feature adds to the list, in every process of the service."""


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy in this process."""
    monkeypatch.syspath_prepend(str(TOY))
    toy: Any = import_module("greetings")

    monkeypatch.setattr(features, "FEATURES", (*features.FEATURES, toy.GREETINGS))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "greetings"]:
        del sys.modules[name]


@pytest.mark.usefixtures("mounted")
def test_its_command_is_among_the_others() -> None:
    shown = CliRunner().invoke(waypost, ["--help"])
    assert "greetings" in shown.output and "Greet nobody yet." in shown.output
    assert CliRunner().invoke(waypost, ["greetings"]).output == "nobody was greeted\n"


@pytest.mark.usefixtures("mounted")
def test_its_settings_are_a_section_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    def said(text: str, **environ: str) -> Any:
        path = tmp_path / "waypost.yaml"
        path.write_text(f"apps: {{demo: {{}}}}\n{text}")
        return load(path, environ).features.get("greetings")

    assert said("") is None
    assert said("greetings: {word: hi}").word == "hi"
    assert said("", WAYPOST_GREETINGS__WORD="hey").word == "hey"
    with pytest.raises(ConfigurationError, match=r"greetings\.wrod: unknown key; did you mean 'word'"):
        said("greetings: {wrod: hi}")
    with pytest.raises(ConfigurationError, match=r"greetings\.keep_ms: expected `int` >= 0"):
        said("greetings: {keep_ms: -1}")


@pytest.mark.usefixtures("mounted")
def test_its_line_of_the_documentation_and_its_settings_are_made() -> None:
    assert "| `greetings` | Users are greeted. | `PUT /v1/users/{user_id}/greeting` (admin)" in features.markdown()
    shown = CliRunner().invoke(waypost, ["check-config", "--settings"])
    assert "| `greetings.word` | text (`hello`) | What is said. |" in shown.output


def test_the_page_of_features_is_what_is_mounted() -> None:
    """Print it anew with ``python -m scripts.features``."""
    assert features.markdown() in (ROOT / "docs/internals/features.md").read_text()


async def _told(service: Service) -> Any:
    status, body = await service.ask("GET", "/v1/greetings")
    assert status == 200, body
    return body


async def _heard_all(service: Service) -> Any:
    body = await _told(service)
    return body if body["journal"] and set(map(str, body["journal"])) <= set(body["heard"]) else None


async def _send(service: Service, user: str) -> None:
    status, body = await service.ask("POST", "/v1/notifications", {"user_id": user, "title": "News"})
    assert status == 202, body


async def _restarted(service: Service, **settings: Any) -> None:
    assert service.process is not None
    service.process.terminate()
    await service.ended()
    service.configure(**settings)
    await service.start()


@pytest.mark.asyncio
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_all_of_it_works_in_real_processes(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Two workers on each engine: tables, route, scope, reader, duty, erasure and retention."""
    settings: dict[str, Any] = {"workers": 2, "greetings": {"word": "hi"}}
    if engine == "postgres":
        settings["store"] = request.getfixturevalue("postgres_url")
    async with running(tmp_path, sitecustomize=MOUNTED, **settings) as service:
        for user in ("ada", "bob"):
            assert (await service.ask("PUT", f"/v1/users/{user}/greeting"))[0] == 204
        assert (await _told(service))["greeted"] == ["ada", "bob"]
        await _refuses_without_the_scope(service)
        await _decides_who_is_told_and_how(service)

        await _send(service, "ada")
        before = await until(lambda: _heard_all(service), "each row of the journal at the reader")
        await until(lambda: _rounds(service, 3), "three rounds of the duty")
        assert len((await _told(service))["rounds"]) == 1, "one process of the two does it"

        assert (await service.ask("DELETE", "/v1/users/ada"))[0] == 202
        await until(lambda: _greeted(service, ["bob"]), "the erasure of a greeting")

        await _restarted(service, **settings | {"greetings": {"keep_ms": 0}})
        await _send(service, "bob")
        after = await until(lambda: _heard_all(service), "each row after the restart")
        assert after["word"] == "hello"
        assert set(before["heard"]) < set(after["heard"])
        assert set(after["heard"].values()) == {1}, "no row came twice: the position is stored"
        await until(lambda: _greeted(service, []), "the end of an old greeting")


async def _refuses_without_the_scope(service: Service) -> None:
    wanted = {"caller": "reader", "scopes": ["read"]}
    _, made = await service.ask("POST", "/v1/keys", wanted)
    key, service.key = service.key, made["key"]
    assert (await service.ask("GET", "/v1/greetings"))[0] == 403
    service.key = "wp_nobody"
    assert (await service.ask("GET", "/v1/greetings"))[0] == 401
    service.key = key


async def _decides_who_is_told_and_how(service: Service) -> None:
    """Its rule asks what it has read of the user, its renderer says it in the user's way; ``explain`` shows both."""
    said: dict[str, Any] = {}
    tokens = (await service.lab.ask("POST", "/tokens", {"platform": "android", "count": 2}))["tokens"]
    for user, token in zip(("ada", "eve"), tokens, strict=True):
        device = {"platform": "android", "token": token}
        assert (await service.ask("PUT", f"/v1/devices/{user}/phone", device))[0] in {200, 201}
        status, explained = await service.ask("POST", "/v1/explain", {"user_id": user, "title": "News"})
        assert status == 200, explained
        (said[user],) = explained["targets"]
    assert "Dear friend: News" in said["ada"]["rendered"]["body"]
    assert said["eve"]["suppressed"] == "never_greeted"
    _, told = await service.ask("POST", "/v1/notifications", {"user_id": "eve", "title": "News"})

    async def reasons() -> Any:
        _, detail = await service.ask("GET", f"/v1/notifications/{told['id']}")
        return [each["reason"] for each in detail["receipts"] if each["status"] == "suppressed"]

    assert await until(reasons, "the end of what a rule suppressed") == ["never_greeted"]


async def _rounds(service: Service, least: int) -> bool:
    rounds: dict[str, int] = (await _told(service))["rounds"]
    return sum(rounds.values()) >= least


async def _greeted(service: Service, users: list[str]) -> bool:
    greeted: list[str] = (await _told(service))["greeted"]
    return greeted == users
