"""What every command promises: examples in its help, and exit codes that scripts can rely on."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import click
import pytest
from click.testing import CliRunner

from tests.certificates import Authority
from waypost.bootstrap.admin import open_admin_store
from waypost.bootstrap.registry import load
from waypost.cli import main, waypost
from waypost.cli.views import VOCABULARIES
from waypost.domain.ids import AppId
from waypost.ports.audit import AuditQuery, Ordered
from waypost.stores.sql.named_views import NAMED


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Each command with the words that call it, groups included."""
    context = click.Context(waypost)
    for name in waypost.list_commands(context):
        command = waypost.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())


class Ended(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


def run(folder: Path, *arguments: str, **environ: str) -> Ended:
    """Run the command line as its script does, in *folder* and with nothing of Waypost in its environment."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")} | environ
    umask = os.umask(0)
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, own, clear=True),
        patch.object(sys, "argv", ["waypost", *arguments]),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
        pytest.raises(SystemExit) as left,
    ):
        main()
    os.umask(umask)
    return Ended(int(left.value.code or 0), out.getvalue(), err.getvalue())


def run_apart(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    command = [sys.executable, "-m", "waypost.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=clean | environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in every_command()])
def test_every_command_shows_an_example_of_itself(name: str, command: click.Command) -> None:
    shown = CliRunner().invoke(waypost, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert f"  waypost {name} " in f"{shown.output} ".replace("\n", " \n"), shown.output


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in every_command()])
def test_every_command_that_answers_speaks_json(name: str, command: click.Command) -> None:
    if not isinstance(command, click.Group) and name != "demo":
        assert any("--json" in option.opts for option in command.params)


def test_wrong_usage_is_2(tmp_path: Path) -> None:
    for arguments in (["nonsense"], ["send"], ["serve"], ["devices", "add", "u", "d"], ["serve", "--workers", "65"]):
        assert run(tmp_path, *arguments, WAYPOST_API_KEY="k").returncode == 2


def test_a_call_without_a_key_says_where_to_put_it(tmp_path: Path) -> None:
    result = run(tmp_path, "show", "some-id")
    assert (result.returncode, "WAYPOST_API_KEY" in result.stderr) == (2, True)


def test_what_cannot_be_called_is_wrong_usage_without_the_key(tmp_path: Path) -> None:
    for url, key in (("127.0.0.1:8080", "k"), ("http://127.0.0.1:99999", "k"), ("http://127.0.0.1:9", "secret\n")):
        result = run(tmp_path, "show", "some-id", "--url", url, WAYPOST_API_KEY=key)
        assert (result.returncode, "Traceback" in result.stderr, "secret" in result.stderr) == (2, False, False)
    result = run(tmp_path, "show", "i", "--url", "https://127.0.0.1:9", "--ca-file", "absent.pem", WAYPOST_API_KEY="k")
    assert (result.returncode, "--ca-file" in result.stderr) == (2, True)


def test_a_mistyped_command_is_told_which_may_have_been_meant(tmp_path: Path) -> None:
    assert "did you mean 'serve'?" in run(tmp_path, "serv").stderr


def test_a_file_of_notifications_takes_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "many.ndjson").write_text("")
    assert run(tmp_path, "send", "--many", "many.ndjson", WAYPOST_API_KEY="k").returncode == 0
    for more in (["alice"], ["--title", "Hi"], ["--wait"], ["--data", "a=b"], ["--channel", "sms"]):
        assert run(tmp_path, "send", "--many", "many.ndjson", *more, WAYPOST_API_KEY="k").returncode == 2


def test_a_list_that_cannot_be_read_makes_no_job(tmp_path: Path) -> None:
    """It is wrong usage before the API is asked for anything: nothing listens at port 9."""
    (tmp_path / "folder.CSV").mkdir()
    for listed in ("absent.ndjson", "folder.CSV", "people.txt"):
        command = ["bulk", "send", "--url", "http://127.0.0.1:9", "--title", "Hi", "--list", listed]
        result = run(tmp_path, *command, WAYPOST_API_KEY="k")
        assert (result.returncode, "--list" in result.stderr, "Traceback" in result.stderr) == (2, True, False)


def test_an_unreachable_api_is_one_line_and_1(tmp_path: Path) -> None:
    """Port 9 is discard; nothing listens there."""
    result = run_apart(tmp_path, "show", "some-id", "--url", "http://127.0.0.1:9", WAYPOST_API_KEY="secret-key")
    assert result.returncode == 1
    assert result.stderr == "waypost: no answer from 127.0.0.1:9: Connection refused\n"


def test_a_wrong_configuration_is_one_line_and_1(tmp_path: Path) -> None:
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {apns: {key_fil: x}}}")
    for command in (["check-config"], ["serve"], ["keys", "list"], ["migrate"]):
        result = run(tmp_path, *command)
        assert result.returncode == 1
        assert result.stderr == (
            "waypost: configuration: apps.demo.apns.key_fil: unknown key; did you mean 'key_file'?\n"
        )


def test_a_store_in_a_folder_that_is_not_there_is_one_line_and_1(tmp_path: Path) -> None:
    (tmp_path / "waypost.yaml").write_text("{store: sqlite:///absent/waypost.db, apps: {demo: {}}}")
    for command in (["check-config"], ["serve"], ["keys", "list"], ["migrate"]):
        result = run(tmp_path, *command)
        assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
        assert result.stderr.startswith("waypost: configuration: store: cannot write into ")


def test_check_config_prints_the_reference(tmp_path: Path) -> None:
    result = run(tmp_path, "check-config", "--settings")
    assert result.returncode == 0
    assert "`apps.<app>.apns.key_file`" in result.stdout


def test_views_are_printed_in_the_words_of_the_stores_engine(tmp_path: Path) -> None:
    """What they show is asked in tests/contract/test_named_views.py."""
    assert {str(each) for each in NAMED} == set(VOCABULARIES)
    config = tmp_path / "waypost.yaml"
    config.write_text("apps: {demo: {}}")
    assert "CREATE VIEW notify_delivery_receipts AS" in run(tmp_path, "views", "notify").stdout
    assert "CREATE" not in run(tmp_path, "views", "notify", "--drop").stdout
    config.write_text("{store: postgresql://waypost@127.0.0.1/waypost, apps: {demo: {}}}")
    made = run(tmp_path, "views", "user_api").stdout
    assert made.startswith("CREATE SCHEMA IF NOT EXISTS user_api;\nDROP VIEW IF EXISTS user_api.notifications;\n")
    assert not (tmp_path / "waypost.db").exists()


def test_check_config_names_the_credential_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {fcm: {service_account_file: absent.json}}}")
    result = run(tmp_path, "check-config", "--json")
    assert result.returncode == 1
    assert result.stderr.startswith("waypost: apps.demo.fcm.service_account_file: ")
    assert json.loads(result.stdout)["ok"] is False


def test_a_database_that_is_none_is_one_line_with_its_code(tmp_path: Path) -> None:
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {}}")
    (tmp_path / "waypost.db").write_bytes(b"this is no database " * 500)
    result = run(tmp_path, "migrate")
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("waypost: storage_broken: ")


def test_check_config_says_when_what_ends_and_fails_on_what_has_ended(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    authority.issue("server", days=12)
    authority.issue("push", days=-3)
    (tmp_path / "waypost.yaml").write_text(
        "rest: {tls: {certificate_file: server.pem, key_file: server-key.pem}}\n"
        "apps: {demo: {apns: {certificate_file: push.pem, topic: a.b, ca_file: push.pem},"
        " expires_on: {apns: 2200-01-01}}}\n"
    )
    result = run(tmp_path, "check-config", "--json")
    assert result.returncode == 1
    assert result.stderr.startswith("waypost: demo/apns ended on ")
    said = json.loads(result.stdout)
    assert said["ends"].keys() == {"rest.tls", "demo/apns"} == said["credentials"].keys()
    assert f"rest.tls       ok, ends on {said['ends']['rest.tls'][:10]}" in run(tmp_path, "check-config").stdout


def test_what_is_done_with_keys_is_on_record(tmp_path: Path) -> None:
    """By whom and on which machine; the key itself is nowhere in it."""
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {}}")
    made = run(tmp_path, "keys", "create", "--app", "demo", "--caller", "shop").stdout.strip()
    prefix = made[: len("wp_4k2h7x3a")]
    assert run(tmp_path, "keys", "revoke", prefix).returncode == 0
    assert run(tmp_path, "keys", "revoke", "wp_aaaaaaaa").returncode == 1
    config = load(tmp_path / "waypost.yaml", {})

    async def recorded() -> list[Ordered]:
        async with open_admin_store(config) as store:
            return [entry.ordered for entry in await store.audit.page(AuditQuery(AppId("demo")))]

    revoked, created = asyncio.run(recorded())
    assert (created.act, created.subject, revoked.act, revoked.subject) == ("key.made", prefix, "key.revoked", prefix)
    assert created.by.startswith("cli:") and created.origin == socket.gethostname()
    assert made not in str((revoked, created))
