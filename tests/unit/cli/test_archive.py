"""The archive by the command line, over a store and a folder of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from waypost.bootstrap.admin import open_admin_store
from waypost.bootstrap.registry import load
from waypost.cli import waypost
from waypost.domain.content import Content
from waypost.domain.ids import AppId, CallerId, UserId, format_id, next_ids
from waypost.domain.notification import Lane, Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.features.archive.parts import files_in
from waypost.ports.audit import Act, AuditEntry, AuditQuery
from waypost.ports.views import NotificationDetail, NotificationRecord
from waypost.runtime.clock import SystemClock

AT = Instant(1_750_000_000_000)
ONE = next_ids(AT, 1, bytes(10), 0)[0][0]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One app, whose one notification is in the archive."""
    path = tmp_path / "waypost.yaml"
    path.write_text(f"apps: {{demo: {{}}}}\nstore: sqlite:///waypost.db\narchive: {{to: {tmp_path}/archive}}\n")
    assert run(path, "migrate").exit_code == 0
    asyncio.run(_archive_one(path))
    return path


async def _archive_one(path: Path) -> None:
    config = load(path, {})
    content = Content(title="Your parcel")
    made = Notification(ONE, AppId("demo"), CallerId("shop"), UserId("ann"), content, AT, AT, 0, Lane.NORMAL)
    detail = NotificationDetail(NotificationRecord(made, NotificationStatus.SENT, AT))
    async with open_admin_store(config) as store:
        assert await files_in(store, config.features["archive"], SystemClock()).write(made.app, [[detail]])


def run(config: Path, *words: str) -> Any:
    """Run a command."""
    return CliRunner().invoke(waypost, [*words, "--config", str(config)])


def said(config: Path, *words: str, code: int = 0) -> Any:
    """What a command of the archive answers, as JSON."""
    result = run(config, "archive", *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_what_is_archived_is_listed_shown_verified_and_known_again(config: Path) -> None:
    (file,) = said(config, "list", "--app", "demo")["files"]
    assert (file["rows"], file["first_id"]) == (1, format_id(ONE))
    assert said(config, "list", "--app", "other")["files"] == []
    assert file["path"] in run(config, "archive", "list").output
    shown = said(config, "show", format_id(ONE))
    assert (shown["content"]["title"], shown["notification"]["archived"]) == ("Your parcel", True)
    assert "Your parcel" in run(config, "archive", "show", format_id(ONE)).output
    assert run(config, "archive", "show", format_id(ONE)[:-1] + "f").exit_code == 1
    assert run(config, "archive", "show", "x").exit_code == 2
    assert said(config, "verify") == {"files": 1, "notifications": 1, "faults": []}
    assert said(config, "restore") == {"files": 0, "notifications": 0, "passed_over": 0, "refused": []}


def test_a_file_that_is_lost_is_named_by_verify_and_the_doctor_until_it_is_given_up(config: Path) -> None:
    """One that is whole is not given up, and who gave one up is on record."""
    (file,) = said(config, "list")["files"]
    assert look(config)[str(config.parent / "archive")]["state"] == "ok"
    assert "is whole" in str(run(config, "archive", "forget", file["path"]).exception)
    (config.parent / "archive" / file["path"]).write_bytes(b"x")
    assert said(config, "verify", code=1)["faults"] == [{"path": file["path"], "fault": "changed"}]
    (config.parent / "archive" / file["path"]).unlink()
    assert said(config, "verify", code=1)["faults"] == [{"path": file["path"], "fault": "away"}]
    found = look(config)[file["path"]]
    assert (found["state"], found["saw"]) == ("problem", "away")
    assert "waypost archive forget" in found["do"]
    assert said(config, "forget", file["path"]) == file
    assert said(config, "list")["files"] == []
    assert said(config, "verify")["faults"] == []
    (entry,) = asyncio.run(_audited(config))
    assert (entry.ordered.act, entry.ordered.subject) == (Act.ARCHIVE_FILE_GIVEN_UP, file["path"])
    assert run(config, "archive", "forget", file["path"]).exit_code == 1


def look(config: Path) -> dict[str, Any]:
    """What the doctor says of the archive, by subject."""
    findings = json.loads(run(config, "doctor", "--offline", "--json").stdout)["findings"]
    return {each["subject"]: each for each in findings if each["check"] == "archive"}


async def _audited(path: Path) -> Sequence[AuditEntry]:
    async with open_admin_store(load(path, {})) as store:
        return await store.audit.page(AuditQuery(AppId("demo")))


def test_without_an_archive_it_is_said_which_setting_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "waypost.yaml"
    path.write_text("apps: {demo: {}}\nstore: sqlite:///waypost.db\n")
    result = run(path, "archive", "verify")
    assert result.exit_code == 1
    assert "archive.to" in str(result.exception)


@pytest.mark.parametrize(
    ("section", "wrong"),
    [
        ("to: ftp://host/x", "archive.to"),
        ("to: s3://", "archive.to"),
        ("to: s3://bucket, s3: {access_key_id: x}", "archive.s3"),
        ("to: s3://bucket, s3: {access_key_id: x, secret_access_key_file: /nowhere}", "secret_access_key_file"),
    ],
)
def test_settings_that_could_never_work_are_named(tmp_path: Path, section: str, wrong: str) -> None:
    path = tmp_path / "waypost.yaml"
    path.write_text(f"apps: {{demo: {{}}}}\nstore: sqlite:///waypost.db\narchive: {{{section}}}\n")
    result = run(path, "check-config")
    assert result.exit_code != 0
    assert wrong in str(result.exception)
