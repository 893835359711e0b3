"""The key of Web Push by the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from click.testing import CliRunner, Result

from waypost.channels.push.vapid import read_vapid
from waypost.cli import waypost


def vapid(*words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(waypost, ["vapid", *words])


def test_a_key_is_made_for_its_user_alone_and_is_what_a_sender_reads(tmp_path: Path) -> None:
    file = tmp_path / "vapid.pem"
    made = vapid(str(file))
    assert made.exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_vapid("apps.demo.webpush", str(file), "mailto:ops@example.com").public_key == made.stdout.strip()
    assert len(made.stdout.strip()) == 87


def test_the_public_half_is_what_openssl_shows(tmp_path: Path) -> None:
    """By the commands that the page of Web Push had."""
    file = tmp_path / "vapid.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", file], check=True)
    shown = f"openssl ec -in {file} -pubout -outform DER | tail -c 65 | base64 -w0 | tr '/+' '_-' | tr -d '='"
    theirs = subprocess.run(["bash", "-c", shown], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert vapid("--public", str(file)).stdout.strip() == theirs
    assert json.loads(vapid("--public", str(file), "--json").stdout)["public_key"] == theirs


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "vapid.pem"
    first = vapid(str(file)).stdout
    before = file.read_bytes()
    again = vapid(str(file))
    assert (again.exit_code, "--public" in again.stderr) == (1, True)
    assert (file.read_bytes(), vapid("--public", str(file)).stdout) == (before, first)


def test_what_cannot_be_read_or_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "not.pem").write_text("no key")
    for words in ("absent/v.pem", "--public not.pem", "--public absent.pem"):
        *options, file = words.split()
        done = vapid(*options, str(tmp_path / file))
        assert done.exit_code == 1
        assert len((done.stderr or str(done.exception)).splitlines()) == 1
