"""Devices out of a registry and into one, by files of the shapes that people have."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from waypost.bootstrap.admin import open_admin_store
from waypost.bootstrap.registry import load
from waypost.cli import waypost
from waypost.domain.device import Device
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import Instant

P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
HEX = "ab" * 32


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two apps on a store that is not there yet."""
    path = tmp_path / "waypost.yaml"
    path.write_text(yaml.safe_dump({"store": "sqlite:///waypost.db", "apps": {"demo": {}, "other": {"device_cap": 1}}}))
    return path


def call(config: Path, *words: str, exit_code: int = 0) -> dict[str, Any]:
    """What a command answers, as JSON."""
    done = CliRunner().invoke(waypost, ["devices", *words, "--config", str(config), "--json"])
    assert done.exit_code == exit_code, (done.output, done.exception)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def imported(config: Path, name: str, text: str, *words: str, app: str = "demo", exit_code: int = 0) -> dict[str, Any]:
    """What becomes of a file with this text."""
    file = config.with_name(name)
    file.write_text(text, encoding="utf-8")
    return call(config, "import", str(file), "--app", app, *words, exit_code=exit_code)


def devices_of(config: Path, user: str, app: str = "demo") -> list[Device]:
    """The active devices of a user."""

    async def asked() -> list[Device]:
        async with open_admin_store(load(config, {})) as store:
            return await store.devices.of_user(AppId(app), UserId(user))

    return asyncio.run(asked())


def row(**fields: Any) -> str:
    """A line of JSON."""
    return json.dumps(fields) + "\n"


def test_what_is_exported_is_imported_elsewhere_whatever_the_format(config: Path) -> None:
    web = {"platform": "web", "token": 'https://push.example/a,"b', "keys": {"p256dh": P256DH, "auth": AUTH}}
    text = row(user_id='alice, "A"', device_id="laptop", locale="de-CH", **web)
    text += row(user_id="bob", device_id="phone", platform="ios", token=HEX, token_use="voip", app_version="1.2")
    assert imported(config, "first.jsonl", text)["created"] == 2
    for ending in ("jsonl", "csv"):
        file = config.with_name(f"out.{ending}")
        assert call(config, "export", str(file), "--app", "demo")["devices"] == 2
        assert file.stat().st_mode & 0o777 == 0o600
        other = config.with_name(f"{ending}.yaml")
        other.write_text(config.read_text().replace("waypost.db", f"{ending}.db"))
        assert call(other, "import", str(file), "--app", "demo")["created"] == 2
        for user in ('alice, "A"', "bob"):
            (here,), (there,) = devices_of(config, user), devices_of(other, user)
            moments = dict.fromkeys(("registered_at", "last_seen_at", "token_updated_at", "last_used_at"), Instant(0))
            assert replaced(here, moments) == replaced(there, moments)


def replaced(device: Device, fields: dict[str, Any]) -> Device:
    """The device with other fields."""
    import msgspec

    return msgspec.structs.replace(device, **fields)


def test_a_second_import_changes_nothing_and_brings_nobody_back(config: Path) -> None:
    """What the app said since, and what a provider said of a token, is newer than the file."""
    text = "user,token,platform\nalice,first,fcm\nalice,first,fcm\nbob,second,android\n"
    assert (found := imported(config, "have.csv", text))["created"] == 2
    assert (found["known"], found["read"]) == (1, 3)
    (device,) = devices_of(config, "bob")

    async def since() -> None:
        async with open_admin_store(load(config, {})) as store:
            await store.devices.deactivate(device.app, device.user_id, device.device_id)

    asyncio.run(since())
    before = devices_of(config, "alice")
    assert (found := imported(config, "have.csv", text))["created"] == 0
    assert found["known"] == 3
    assert (devices_of(config, "alice"), devices_of(config, "bob")) == (before, [])


def test_a_trial_checks_every_row_and_writes_nothing(config: Path) -> None:
    text = "user_id,token,platform\nalice,t1,android\nbob,t2,blackberry\n"
    found = imported(config, "have.csv", text, "--dry-run", exit_code=1)
    assert (found["created"], found["refused"], found["dry_run"]) == (1, 1, True)
    assert devices_of(config, "alice") == []


def test_an_export_of_onesignal_is_read_as_it_is(config: Path) -> None:
    head = "player_id,identifier,session_count,language,game_version,device_os,device_type,external_user_id,"
    head += "web_auth,web_p256,invalid_identifier"
    rows = [
        ["p1", HEX, "3", "en", "2.0", "17.1", "0", "alice", "", "", "f"],
        ["p2", "fcm-token:1", "1", "de", "2.0", "14", "1", "bob", "", "", "f"],
        ["p3", "https://push.example/x", "1", "fr", "", "119", "5", "carol", AUTH, P256DH, "f"],
        ["p4", "gone", "1", "fr", "", "14", "1", "dave", "", "", "t"],
        ["p5", "nobody's", "1", "fr", "", "14", "1", "", "", "", "f"],
        ["p6", "x@example.com", "1", "fr", "", "", "11", "erin", "", "", "f"],
    ]
    text = "\ufeff" + "\n".join([head, *(",".join(each) for each in rows)]) + "\n"
    found = imported(config, "onesignal.csv", text, exit_code=1)
    assert (found["created"], found["dead"], found["refused"]) == (3, 1, 2)
    assert [(each["line"], each["code"]) for each in found["errors"]] == [(6, "missing_user"), (7, "unknown_platform")]
    (carol,), (alice,) = devices_of(config, "carol"), devices_of(config, "alice")
    assert (carol.device_id, carol.platform, carol.locale, len(carol.keys.p256dh if carol.keys else b"")) == (
        "p3",
        "web",
        "fr",
        65,
    )
    assert (alice.platform, alice.app_version, alice.os_version) == ("ios", "2.0", "17.1")


def test_each_token_of_a_list_is_a_user_of_its_own(config: Path) -> None:
    assert imported(config, "tokens.txt", "one\n\ntwo\none\n", "--platform", "android")["created"] == 2
    file = config.with_name("out.csv")
    call(config, "export", str(file), "--app", "demo")
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert sorted(each["token"] for each in rows) == ["one", "two"]
    assert all(each["user_id"] == each["device_id"] and each["user_id"].startswith("token-") for each in rows)


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("a.jsonl", "{no json", "invalid_row"),
        ("a.jsonl", "[1]", "invalid_row"),
        ("a.jsonl", '{"user": "u", "platform": "ios"}', "missing_token"),
        ("a.jsonl", '{"token": "hush", "platform": "android", "locale": "de"}', "missing_user"),
        ("a.jsonl", '{"user": "u", "token": "hush"}', "unknown_platform"),
        ("a.jsonl", '{"user": "u", "token": "hush hush", "platform": "android"}', "invalid_device"),
        ("a.jsonl", '{"user": "u", "token": "hush", "platform": "android", "locale": 7}', "invalid_device"),
        ("a.jsonl", '{"user": "u\\u0000", "token": "hush", "platform": "android"}', "invalid_device"),
        ("a.jsonl", '{"user": "u", "token": "https://hush/1", "platform": "web"}', "invalid_device"),
        ("a.csv", "u,hush", "invalid_row"),
        ("a.csv", "u,hush,android,more", "invalid_row"),
        ("a.csv", 'u,"hush"x,android', "invalid_row"),
    ],
)
def test_a_row_that_means_nothing_is_told_by_line_and_code_and_no_token(
    config: Path, name: str, line: str, code: str
) -> None:
    good = row(user="a", token="t", platform="android") if name == "a.jsonl" else "user,token,platform\na,t,android\n"
    found = imported(config, name, f"{good}{line}\n", exit_code=1)
    (error,) = found["errors"]
    assert (found["created"], error["line"], error["code"]) == (1, len(good.splitlines()) + 1, code)
    assert "hush" not in str(found)


def test_bytes_that_are_no_text_are_a_row_that_is_refused(config: Path) -> None:
    file = config.with_name("latin.csv")
    file.write_bytes("user,token,platform\njürg,t,android\nanna,s,android\n".encode("latin-1"))
    found = call(config, "import", str(file), "--app", "demo", exit_code=1)
    assert (found["created"], found["errors"][0]["line"], found["errors"][0]["code"]) == (1, 2, "invalid_row")


def test_the_cap_of_the_app_holds_and_many_pages_are_read(config: Path) -> None:
    text = "user,device,token,platform\n" + "".join(f"u{n % 300},d{n},t{n},android\n" for n in range(900))
    found = imported(config, "many.csv", text, app="other")
    assert (found["read"], found["created"], found["pushed_out"]) == (900, 900, 600)
    assert call(config, "export", str(config.with_name("out.jsonl")), "--app", "other")["devices"] == 300


def test_wrong_usage_is_2(config: Path) -> None:
    file = config.with_name("a.xls")
    file.touch()
    for words in (["import", str(file)], ["import", "-"], ["import", "absent.csv"], ["export", str(file)]):
        done = CliRunner().invoke(waypost, ["devices", *words, "--app", "demo", "--config", str(config)])
        assert done.exit_code == 2, words
    done = CliRunner().invoke(waypost, ["devices", "export", "--app", "nobody", "--config", str(config)])
    assert done.exit_code == 2


def test_people_are_told_by_lines(config: Path) -> None:
    config.with_name("a.jsonl").write_text("{\n" + row(user="a", token="t", platform="fcm"))
    words = ["devices", "import", str(config.with_name("a.jsonl")), "--app", "demo", "--config", str(config)]
    done = CliRunner().invoke(waypost, words)
    assert "line 1: invalid_row: not a JSON object" in done.stderr
    assert "2 rows: 1 new, 0 known, 0 dead, 1 refused" in done.stdout
    assert devices_of(config, "a")[0].device_id != DeviceId("")
